"""Gaussian processes on instances: targets and noises from class weights, an exact engine, prediction.

Nothing here knows of bags. The q + 1 classes are independent processes that share one kernel and differ in their
targets, noises and constant means.
"""
