# docker build -t mipl . && docker run --rm -v "$PWD/demo:/home/mipl/demo" mipl
FROM python:3.11-slim
WORKDIR /source
COPY pyproject.toml setup.py constraints.txt README.md LICENSE ./
COPY src src
# PIP_INDEX_URL as a build argument takes the CPU build of PyTorch from an index that has it; the default brings CUDA.
ARG PIP_INDEX_URL
RUN pip install --no-cache-dir --constraint constraints.txt ".[excel]"
WORKDIR /home/mipl
ENTRYPOINT ["mipl"]
CMD ["demo"]
