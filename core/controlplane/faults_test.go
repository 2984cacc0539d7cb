package controlplane_test

import (
	"context"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/fakes/fakeagent"
)

// inCall has something happen in the n-th next call of a method (0: the next), and what it returns befall the call.
func (w *world) inCall(method string, n int, happens func() fakeagent.Fault) {
	from := w.server.Calls(method)
	w.server.OnCall(func(_ context.Context, c fakeagent.Call) (f fakeagent.Fault) {
		if c.Method == method && c.CallIndex == from+n {
			f = happens()
		}
		return f
	})
}

// inEveryCall is inCall for all calls of a method from now on.
func (w *world) inEveryCall(method string, happens func() fakeagent.Fault) {
	w.server.OnCall(func(_ context.Context, c fakeagent.Call) (f fakeagent.Fault) {
		if c.Method == method {
			f = happens()
		}
		return f
	})
}

// during does something in the next call of a method, before it is carried out.
func (w *world) during(method string, do func()) {
	w.inCall(method, 0, func() (f fakeagent.Fault) { do(); return f })
}

// losing loses the reply of the n-th next call of a method (0: the next), after it was carried out.
func (w *world) losing(method string, n int) {
	w.inCall(method, n, func() fakeagent.Fault { return fakeagent.Fault{After: fakeagent.ErrReplyLost} })
}

// refusing has the agent refuse every call of a method.
func (w *world) refusing(method string, reason command.Reason) {
	refusal := &command.Refusal{Reason: reason, Message: "as the test wants it"}
	w.inEveryCall(method, func() fakeagent.Fault { return fakeagent.Fault{Before: refusal} })
}

// failing has the n-th next call of a method end with an error, with nothing done.
func (w *world) failing(method string, n int, err error) {
	w.inCall(method, n, func() fakeagent.Fault { return fakeagent.Fault{Before: err} })
}
