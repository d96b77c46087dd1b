"""Gaussian processes on instances: kernels, engines, posteriors, and what a low-rank process is built from.

Nothing here knows of bags or candidate labels. An engine sees instances, and for each class targets and noises
(`mipl.gp.exact`, `mipl.gp.low_rank`); a posterior gives means and variances at new instances (`mipl.gp.posterior`);
landmarks and Nyström features turn a process into a linear model (`mipl.gp.landmarks`, `mipl.gp.nystrom`).
"""
