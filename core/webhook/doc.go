// Package webhook holds the rules of webhooks (spec, sections "Webhook endpoint", "Webhooks" and "Events"): which URLs and
// addresses may be delivered to, which events an endpoint wants, how a delivery is signed, when it is tried again, and when
// an endpoint is disabled.
//
// A delivery is made at least once and in no promised order. Its ID goes out as Service-Event-Id with every attempt, which is
// how a receiver knows a duplicate.
package webhook
