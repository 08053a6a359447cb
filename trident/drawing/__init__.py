"""Drawings of a plan: as SVG and as Mermaid. Nothing in here knows a server."""
