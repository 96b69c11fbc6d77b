"""Elastic training: run, TorchState, ElasticSampler."""

from ...common.elastic import ObjectState, State, run_fn
from .sampler import ElasticSampler
from .state import TorchState

run = run_fn

__all__ = ["ElasticSampler", "ObjectState", "State", "TorchState", "run"]
