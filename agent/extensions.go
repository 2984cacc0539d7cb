package agent

import (
	"context"
	"errors"
	"fmt"

	"github.com/pgherd/pgherd/agent/artifact"
	"github.com/pgherd/pgherd/agent/extensions"
	"github.com/pgherd/pgherd/agent/jobs"
	"github.com/pgherd/pgherd/agent/ledger"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/fault"
)

const (
	// changes is how many extensions are changed at a time, of which an account has at most half. Each change has a connection
	// of its own, and may wait for locks of its customer's for as long as its patience lasts; backups do not wait for it. An
	// account with very many such changes keeps another waiting for one of them. There are no more slots, because the server
	// keeps few connections for the agent.
	changes = 2
	// changeAdmin bounds the connections to the maintenance database that they share. No statement on one waits for a customer
	// for longer than a moment. None is kept: what a connection knows of roles can be outdated, and the server has few.
	changeAdmin = 2
)

// extensions prepares the work on extensions.
func (a *Agent) extensions(c Config) error {
	admin, err := a.postgres.OpenMaintenance(changeAdmin)
	if err != nil {
		return err
	}
	admin.SetMaxIdleConns(0)
	a.changer = &extensions.Changer{
		Host: c.PostgresHost, Port: c.PostgresPort, Admin: admin,
		LockWait: c.ExtensionLockWait, Patience: c.ExtensionPatience, Log: a.log,
	}
	ledger.OnJob(a.ledger, a.changer.Kind(jobs.NewSlots(changes)))
	ledger.OnJob(a.ledger, proofs(a.backuper, jobs.NewSlots(1)))
	return nil
}

// proofs is the kind of job that qualifies an extension.
func proofs(b *artifact.Backuper, slots *jobs.Slots) jobs.Kind[command.QualifyExtension, command.ExtensionProof] {
	failed := func(message string) command.ExtensionProof {
		return command.ExtensionProof{State: command.ExtensionFailed, Message: message}
	}
	discard := func(ctx context.Context, j jobs.Job, _ command.QualifyExtension) error {
		return b.DiscardProof(ctx, j.OperationID)
	}
	return jobs.Kind[command.QualifyExtension, command.ExtensionProof]{
		Slots: slots,
		Run: func(
			ctx context.Context, j jobs.Job, c command.QualifyExtension, tell jobs.Tell,
		) (command.ExtensionProof, error) {
			found, err := b.Qualify(ctx, j.OperationID, c.Extension, c.Version, artifact.Progress(tell))
			var late *artifact.TooLongError
			var known *fault.Error
			switch {
			case errors.As(err, &late):
				return failed(late.Error()), nil
			case errors.As(err, &known):
				return failed(known.Message), nil
			}
			return command.ExtensionProof{
				State: command.ExtensionDone, Stage: "done", Qualified: found.Why == "", Message: found.Why,
				Version: c.Version, ServerVersion: found.ServerVersion,
			}, err
		},
		Abandon: func(
			ctx context.Context, j jobs.Job, c command.QualifyExtension, attempts int, _ error,
		) (command.ExtensionProof, error) {
			return failed(fmt.Sprintf("PostgreSQL or its agent went down during %d attempts", attempts)), discard(ctx, j, c)
		},
		Discard:  discard,
		Complete: func(context.Context, jobs.Job, command.QualifyExtension) (bool, error) { return false, nil },
		Running: func(stage string, _ int, _ command.Bytes) command.ExtensionProof {
			return command.ExtensionProof{State: command.ExtensionRunning, Stage: stage}
		},
		Failed: func(cause error) command.ExtensionProof {
			return failed(jobs.ForCustomer(cause, "the proof could not be made; the agent's log says why"))
		},
		Made: func(command.ExtensionProof) bool { return false }, // it leaves nothing
	}
}
