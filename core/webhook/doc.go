// Package webhook holds the rules of webhooks (spec, sections "Webhook endpoint", "Webhooks" and "Events"): which URLs and
// addresses are allowed, which events an endpoint wants, how a delivery is signed, when it is retried, and when an endpoint is
// disabled.
//
// Deliveries are made at least once and in no guaranteed order. Each attempt carries the delivery's ID as Service-Event-Id, by
// which a receiver recognises duplicates.
package webhook
