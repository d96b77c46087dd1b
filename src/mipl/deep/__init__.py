"""Deep methods: attention networks and a variational classifier that pool a bag's instances, trained by one loop."""

from mipl.deep.demipl import DEMIPL
from mipl.deep.elimipl import ELIMIPL
from mipl.deep.fastmipl import FastMIPL
from mipl.deep.miplma import MIPLMA
from mipl.deep.promipl import ProMIPL

__all__ = ["DEMIPL", "ELIMIPL", "MIPLMA", "FastMIPL", "ProMIPL"]
