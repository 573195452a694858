"""What stands around a deployed service: proxies, rules of alerts, manifests, units."""
