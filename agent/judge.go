package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/pgherd/pgherd/agent/archive/pgbackrest"
	"github.com/pgherd/pgherd/agent/floors"
	"github.com/pgherd/pgherd/agent/pgdump"
	"github.com/pgherd/pgherd/agent/pooler"
	"github.com/pgherd/pgherd/core/command"
)

// versionTime bounds how long one server may take to answer; one that hangs is not waited for.
const versionTime = 3 * time.Second

// programs are those that the agent works with.
func (a *Agent) newPrograms(tool pgdump.Tool) *floors.Programs {
	within := func(ask floors.Ask) floors.Ask {
		return func(ctx context.Context) (floors.Version, error) {
			ctx, cancel := context.WithTimeout(ctx, versionTime)
			defer cancel()
			return ask(ctx)
		}
	}
	asks := map[floors.Program]floors.Ask{ //nolint:exhaustive // pgBackRest only where it is needed
		floors.PostgreSQL: within(a.postgres.Version),
		floors.PgBouncer: within(func(ctx context.Context) (found floors.Version, err error) {
			text, err := a.pooler.Console.Version(ctx)
			if err != nil {
				return found, err
			}
			return floors.Parse(text)
		}),
		floors.PgDump: tool.Version,
	}
	if own := a.config.Archive; own != nil {
		asks[floors.PgBackRest] = within(func(ctx context.Context) (found floors.Version, err error) {
			text, err := pgbackrest.Version(ctx, own.PgBackRest)
			if err != nil {
				return found, err
			}
			return floors.Parse(text)
		})
	}
	return floors.NewPrograms(a.config.Versions, asks, func(err error) bool { return errors.Is(err, pooler.ErrUnreachable) }, a.log)
}

// Programs lists PostgreSQL, PgBouncer, pg_dump and, with an archive, pgBackRest with what is known of their versions.
func (a *Agent) Programs() []command.Program { return a.programs.Report() }

// Languages lists the trusted procedural languages besides PL/pgSQL that the agent saw when it last looked.
func (a *Agent) Languages() []floors.LanguageVerdict { return a.languages.Report() }

// checkFloors waits until PostgreSQL answers, and returns a *floors.Refusal, or what is wrong with the server's program, before a
// predecessor loses charge.
func (a *Agent) checkFloors(ctx context.Context) error {
	for _, version := range a.config.Versions.Accept {
		a.log.Warn("a version with known holes would be accepted (--accept-versions)", zap.String("version", version))
	}
	if err := a.judged(ctx, "looking at versions", a.programs.Look); err != nil || ctx.Err() != nil {
		return err
	}
	if err := a.checkServerProgram(ctx); err != nil {
		return err
	}
	for _, name := range a.config.Languages.Accept {
		a.log.Warn("a trusted procedural language would be accepted (--accept-languages)", zap.String("language", name))
	}
	return a.judged(ctx, "looking for procedural languages", a.languages.Look)
}

// CheckServerProgram refuses a program for what is had back of the archive that is no PostgreSQL as servers have it.
func (c *Config) CheckServerProgram(ctx context.Context) error {
	if c.Archive == nil {
		return nil
	}
	found, err := c.serverProgram(ctx)
	if err == nil {
		err = found.Runs(0)
	}
	return err
}

func (c *Config) serverProgram(ctx context.Context) (floors.Version, error) {
	return floors.Find(ctx, c.Archive.Postgres, c.dumpAs())
}

// checkServerProgram refuses one of another major version than the server, which has answered. One that does not say its version
// now ends no agent.
func (a *Agent) checkServerProgram(ctx context.Context) error {
	server, known := a.programs.Known(floors.PostgreSQL)
	if a.config.Archive == nil || !known {
		return nil
	}
	found, err := a.config.serverProgram(ctx)
	if err != nil {
		a.log.Warn("the server's program does not say its version (--postgres-program)", zap.Error(err))
		return nil
	}
	if err := found.Runs(server.Number[0]); err != nil {
		return fmt.Errorf("--postgres-program: %w", err)
	}
	return nil
}

// judged waits until a look at what the agent works beside ends in a judgement, and returns that if it is a refusal.
func (a *Agent) judged(ctx context.Context, what string, look func(context.Context) error) (refusal error) {
	_ = a.untilDone(ctx, what, func(ctx context.Context) error {
		err := look(ctx)
		if floors.Is(err) {
			refusal, err = err, nil
		}
		return err
	})
	return refusal
}

// onceInCharge begins a watch when the agent is in charge: what it worked beside at its start may be replaced.
func (a *Agent) onceInCharge(ctx context.Context, watch func(context.Context) error) error {
	select {
	case <-ctx.Done():
		return nil
	case <-a.started:
		return watch(ctx)
	}
}
