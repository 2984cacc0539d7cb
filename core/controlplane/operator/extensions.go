package operator

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/extension"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/ports"
)

const (
	// trialMost bounds a trial, which may wait for others' jobs at the agent.
	trialMost = 15 * time.Minute
	// The pause between two questions about a trial doubles each time, up to the longest.
	shortestPause, longestPause = 5 * time.Millisecond, 500 * time.Millisecond
)

// QualifyExtensions tries every extension of the catalog on a server, which takes some seconds, and stores what each trial has
// shown. The error names the extensions of which nothing was found out; what was stored of them before stays. Once the context
// has ended no other is tried. VALIDATION_ERROR on "server". AGENT_ERROR: the agent does not say which PostgreSQL it has.
func (o *Operator) QualifyExtensions(ctx context.Context, of id.ServerID) (list []extension.Qualification, err error) {
	on, agent, err := o.base.ServerOf(ctx, of)
	if err != nil {
		return nil, notFound(err, "server")
	}
	major, err := base.PostgresOf(ctx, on, agent)
	if err != nil {
		return nil, err
	}
	for _, name := range extension.Names {
		q, one := o.qualify(ctx, agent, name, major)
		if one == nil {
			q.ServerID = of
			one = o.base.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error { return o.putTrial(ctx, tx, on, q) })
		}
		if one != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", name, one))
			if ctx.Err() != nil {
				break // the caller has left
			}
			continue
		}
		list = append(list, q)
	}
	return list, err
}

// putTrial stores what a trial has shown, and records it where that is something else than before.
func (o *Operator) putTrial(ctx context.Context, tx ports.Tx, on server.Server, q extension.Qualification) error {
	stored, err := tx.Qualifications().Of(ctx, on.ID)
	if err != nil {
		return err
	}
	if err := tx.Qualifications().Put(ctx, q); err != nil {
		return err
	}
	before := audit.Details{}
	for _, s := range stored {
		if s.Extension == q.Extension {
			before = outcomeOf(s)
		}
	}
	about := audit.Details{"serverId": string(on.ID), "server": on.Name, "extension": string(q.Extension)}
	return o.recordChanges(ctx, tx, "", audit.ExtensionTried, about, audit.Changes(before, outcomeOf(q)))
}

func outcomeOf(q extension.Qualification) audit.Details {
	return audit.Details{
		"qualified": strconv.FormatBool(q.Qualified), "version": q.Version, "serverVersion": q.ServerVersion,
	}
}

// qualify has the agent try an extension, under an operation of its own, which is closed if its end is not waited for.
func (o *Operator) qualify(
	ctx context.Context, agent ports.Agent, name extension.Name, major int,
) (q extension.Qualification, err error) {
	ctx, cancel := context.WithTimeout(ctx, trialMost)
	defer cancel()
	fence := ports.Fence{OperationID: base.NewID[id.OperationID](o.base.Entropy)}
	defer func() {
		if err != nil {
			closing, done := o.base.Settling(ctx)
			defer done()
			_ = ports.Close(closing, agent, fence) // an agent that cannot be reached forgets the trial by itself
		}
	}()
	for pause := shortestPause; ; pause = min(2*pause, longestPause) {
		proof, err := ports.Do(ctx, agent, fence, command.QualifyExtension{Extension: name, Version: name.Version(major)})
		switch {
		case err != nil:
			return q, err
		case proof.State == command.ExtensionDone:
			return extension.Qualification{
				Extension: name, Version: proof.Version, ServerVersion: proof.ServerVersion, Qualified: proof.Qualified,
				Message: proof.Message, At: o.base.Clock.Now(),
			}, nil
		case proof.State == command.ExtensionFailed:
			return q, errors.New(proof.Message)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return q, ctx.Err()
		}
	}
}

// Trials lists what the trials of a server's extensions have shown: an entry for each, with no time where there was no trial.
func (o *Operator) Trials(ctx context.Context, of server.Server) ([]extension.Qualification, error) {
	stored, err := ports.Read(ctx, o.base.Store, func(ctx context.Context, tx ports.Tx) ([]extension.Qualification, error) {
		return tx.Qualifications().Of(ctx, of.ID)
	})
	return extension.Trials(of.ID, stored), err
}
