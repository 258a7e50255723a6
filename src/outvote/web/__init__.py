"""What both HTTP listeners share: limits, guards, problems and OpenAPI."""
