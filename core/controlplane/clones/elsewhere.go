package clones

import (
	"context"

	"github.com/pgherd/pgherd/core/clone"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/restore"
	"github.com/pgherd/pgherd/core/stage"
	"github.com/pgherd/pgherd/ports"
)

// A clone may be on another server than its source. Then the source's agent makes the file that passes, and admits the other one,
// whose agent reads it from there.

// peer is the source's server, as the other one reaches it.
func (t turn) peer(ctx context.Context) (command.Peer, error) {
	from, _, err := t.c.base.ServerOf(ctx, t.Record.ServerID)
	if err != nil {
		return command.Peer{}, err
	}
	return t.c.base.PeerOf(from, t.Of)
}

// leaveSource has the source's agent remove the file, and admit nobody any more. One that does not answer does so by itself in
// time: the clone does not wait for that.
func (t turn) leaveSource(ctx context.Context) error {
	if t.Ordered {
		return nil
	}
	err := t.closeSource(ctx)
	if err != nil && t.Of.Attempts < restore.MostSwitches {
		return err
	}
	if err != nil {
		t.Log("clone.source_not_closed", err)
	}
	return nil
}

func (t turn) closeSource(ctx context.Context) error {
	return t.Call(ctx, "close_source", func(ctx context.Context, f ports.Fence) error { return ports.Close(ctx, t.Agent, f) })
}

// End implements work.Steps: of a clone on another server, both agents take back what they have begun. An operator need not wait
// for either.
func (t turn) End(ctx context.Context, e work.Ending) (work.Next, error) {
	if !t.Input.Elsewhere() {
		return t.Turn.End(ctx, e)
	}
	switch err := t.Close(ctx, t.at); {
	case command.RefusedFor(err, command.ReasonCompleted):
		return t.Concluded(ctx)
	case err != nil && !t.Untouched(err) && !t.Ordered:
		return work.Next{}, err
	}
	if err := t.closeSource(ctx); err != nil && !t.Untouched(err) && !t.Ordered {
		return work.Next{}, err
	}
	return t.Finish(ctx, e)
}

// Lost implements work.Steps: the source's server is gone. What the clone's server has is taken back as far as it answers, unless
// the clone is whole: then it is concluded.
func (t turn) Lost(ctx context.Context, cause *fault.Error) (work.Next, error) {
	if t.Input.Elsewhere() {
		if err := t.Close(ctx, t.at); command.RefusedFor(err, command.ReasonCompleted) {
			switch {
			case t.Stage == clone.Settling:
				return t.settle(ctx)
			case clone.Machine.Admits(t.Stage, stage.Refused):
				return t.Fail(ctx, cause) // from where it is concluded
			}
			return t.Concluded(ctx)
		}
	}
	return t.Turn.Lost(ctx, cause)
}
