package driver

import (
	"github.com/pgherd/pgherd/acceptance/spec"
	"github.com/pgherd/pgherd/fakes/inbox"
)

// fakeReceivers are receivers whose requests never leave the process.
type fakeReceivers struct{ inbox *inbox.Inbox }

// Answer implements spec.Receivers.
func (f fakeReceivers) Answer(url string, status int) { f.inbox.On(url, inbox.Status(status)) }

// Got implements spec.Receivers.
func (f fakeReceivers) Got(url string) (hooks []spec.Hook) {
	for _, r := range f.inbox.Requests(url) {
		hooks = append(hooks, spec.Hook{EventID: r.EventID, Timestamp: r.Timestamp, Signature: r.Signature, Body: r.Body})
	}
	return hooks
}
