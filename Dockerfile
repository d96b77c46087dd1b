# docker build -t mipl . && docker run --rm -v "$PWD/demo:/work/demo" mipl
FROM python:3.11-slim
WORKDIR /source
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src src
# The CPU build of PyTorch: the default index would bring the CUDA stack.
RUN pip install --no-cache-dir --constraint constraints.txt --index-url https://download.pytorch.org/whl/cpu torch
RUN pip install --no-cache-dir --constraint constraints.txt ".[excel]"
WORKDIR /work
ENTRYPOINT ["mipl"]
CMD ["demo"]
