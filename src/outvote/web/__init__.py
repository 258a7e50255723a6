"""Shared by both HTTP listeners: limits, refusals, problems and OpenAPI."""
