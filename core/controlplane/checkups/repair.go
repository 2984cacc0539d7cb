package checkups

import (
	"context"
	"errors"
	"slices"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/doctor"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/ports"
)

// errUnseen says that a repair was done, and that nobody could look what it has changed.
var errUnseen = errors.New("it was done, but the agent did not answer afterwards")

// unseen reports whether a finding says that the agent was silent.
func unseen(f doctor.Finding) bool {
	return f.Code == doctor.ServerUnreachable || f.Code == doctor.ServerRefuses || f.Code == doctor.OtherProtocol
}

// errStays says that a repair was done, and the difference is still there.
var errStays = errors.New("it was done, and changed nothing")

// repair does what can be done about findings, and compares again. A finding is repaired when it is not found again. One repair
// is often for several findings, and is done once.
func (c *Checkups) repair(ctx context.Context, s server.Server, o Options, list []Diagnosis) error {
	type work struct {
		repair doctor.Repair
		db     id.DatabaseID
		of     string
	}
	outcomes := map[work]error{}
	workOf := func(f doctor.Finding) work {
		w := work{f.Repair(), f.DatabaseID, string(f.OperationID) + string(f.Upload) + string(f.Filename)}
		if w.repair == doctor.RenderPooler {
			return work{repair: w.repair}
		}
		return w
	}
	for _, d := range list {
		w := workOf(d.Finding)
		if _, done := outcomes[w]; done || w.repair == doctor.Nothing {
			continue
		}
		outcomes[w] = c.repairOne(ctx, s, d.Finding)
		c.base.Log(ctx, "doctor.repair", d.DatabaseID, outcomes[w])
	}
	if len(outcomes) == 0 {
		return nil
	}
	left, err := c.lasting(ctx, s, o.pauses())
	for i, d := range list {
		w := workOf(d.Finding)
		switch outcome, done := outcomes[w]; {
		case !done:
		case outcome != nil:
			list[i].Failed = outcome
		case slices.ContainsFunc(left, d.Same):
			list[i].Failed = errStays
		case slices.ContainsFunc(left, unseen):
			list[i].Failed = errUnseen
		default:
			list[i].Repaired = err == nil
		}
	}
	return err
}

// repairOne does one repair, by the commands and questions that the service has anyway, and writes it down.
func (c *Checkups) repairOne(ctx context.Context, s server.Server, f doctor.Finding) error {
	ctx, cancel := context.WithTimeout(ctx, base.AskTime)
	defer cancel()
	agent, err := c.base.Fleet.Agent(s)
	if err != nil {
		return err
	}
	if err := c.record(ctx, s, f); err != nil {
		return err
	}
	switch f.Repair() {
	case doctor.SetAccess:
		return c.setAccess(ctx, agent, f.DatabaseID)
	case doctor.SendSettings:
		return c.base.Resend(ctx, f.DatabaseID, command.Configure{}.About().Kind)
	case doctor.SendAllowlist:
		return c.base.Resend(ctx, f.DatabaseID, command.SetAllowlist{}.About().Kind)
	case doctor.Rejoin:
		return c.rejoin(ctx, agent, f.DatabaseID)
	case doctor.RenderPooler:
		return c.render(ctx, s)
	case doctor.TellAccount:
		return c.tellAccount(ctx, agent, f.DatabaseID)
	case doctor.CloseOperation:
		return closeLeft(ctx, agent, f)
	case doctor.DropUpload:
		_, err = ports.Ask(ctx, agent, command.DropUpload{DatabaseID: f.DatabaseID, UploadID: f.Upload})
	case doctor.RemoveFile:
		_, err = ports.Ask(ctx, agent, command.DeleteBackup{DatabaseID: f.DatabaseID, Filename: f.Filename})
	case doctor.EndForward:
		return c.forwards.EndUnknown(ctx, f.DatabaseID, s.ID)
	case doctor.SendForward:
		return c.forwards.TellForward(ctx, f.DatabaseID, s.ID)
	case doctor.Nothing:
	}
	return err
}

// record adds what is about to be done to the activity log, before it is done. What is about a database without a record is the
// installation's.
func (c *Checkups) record(ctx context.Context, s server.Server, f doctor.Finding) error {
	return c.base.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		var record database.Record
		if f.DatabaseID != "" {
			locked, err := tx.Databases().Lock(ctx, f.DatabaseID)
			if err != nil && !errors.Is(err, ports.ErrNoRow) {
				return err
			}
			record = locked
		}
		return c.base.Audit(ctx, tx, record, audit.Operator, audit.DoctorRepaired, audit.Details{
			"serverId": string(s.ID), "code": string(f.Code), "about": f.Subject, "repair": string(f.Repair()),
		})
	})
}

// setAccess opens or closes a database as its status says, under a generation of its own. It ends no connection. Whatever
// is asked for meanwhile comes under a higher one, and wins.
func (c *Checkups) setAccess(ctx context.Context, agent ports.Agent, db id.DatabaseID) error {
	var want command.SetAccess
	err := c.base.UpdateDatabase(ctx, db, func(ctx context.Context, tx ports.Tx, stored database.Record) error {
		switch under, err := busy(ctx, tx, db); {
		case err != nil:
			return err
		case under:
			return errBusy
		}
		open, serves := doctor.Open(stored.Status)
		if !serves {
			return errBusy
		}
		stored.AccessGeneration++
		want = command.SetAccess{DatabaseID: db, Open: open, Generation: stored.AccessGeneration}
		return tx.Databases().Save(ctx, stored)
	})
	if err != nil {
		return err
	}
	fence := ports.Fence{OperationID: base.NewID[id.OperationID](c.base.Entropy)}
	return ports.Tell(ctx, agent, fence, want)
}

// rejoin puts a database into service that is none of the deleted ones. What its deletion has made is left alone.
func (c *Checkups) rejoin(ctx context.Context, agent ports.Agent, db id.DatabaseID) error {
	open, err := ports.Read(ctx, c.base.Store, func(ctx context.Context, tx ports.Tx) (open bool, err error) {
		r, err := tx.Databases().Get(ctx, db)
		if err != nil {
			return false, err
		}
		under, err := busy(ctx, tx, db)
		if err == nil && (under || r.Status.Gone()) {
			err = errBusy
		}
		return r.Status == database.Active, err
	})
	if err != nil {
		return err
	}
	fence := ports.Fence{OperationID: base.NewID[id.OperationID](c.base.Entropy)}
	_, err = ports.Do(ctx, agent, fence, command.Rejoin{DatabaseID: db, Open: open})
	return err
}

var errBusy = fault.New(fault.DatabaseStateConflict, "work on the database has begun since it was looked at")

// closeLeft closes an operation. One that the agent has completed it does not close: then only what was kept for it goes, and a
// database that it has made stays.
func closeLeft(ctx context.Context, agent ports.Agent, f doctor.Finding) error {
	fence := ports.Fence{OperationID: f.OperationID, Epoch: f.Epoch}
	err := ports.Close(ctx, agent, fence)
	if f.DatabaseID != "" && f.Code != doctor.DatabaseElsewhere && command.RefusedFor(err, command.ReasonCompleted) {
		err = ports.Tell(ctx, agent, fence, command.Discard{DatabaseID: f.DatabaseID})
	}
	return err
}

// render has the agent write the pooler's files: it does that with every allowlist that it is sent. It takes the first database
// that the server has in service.
func (c *Checkups) render(ctx context.Context, s server.Server) error {
	records, err := c.records(ctx, s)
	if err != nil {
		return err
	}
	err = errors.New("the server has no database whose allowlist could be sent")
	for _, r := range records {
		if _, serves := doctor.Open(r.Status); !serves {
			continue
		}
		if err = c.base.Resend(ctx, r.ID, command.SetAllowlist{}.About().Kind); !absent(err) {
			break
		}
	}
	return err
}

// absent reports whether a server has not the database in service that it was told something about.
func absent(err error) bool {
	return command.RefusedFor(err, command.ReasonNotFound) || command.RefusedFor(err, command.ReasonIsolated)
}

func (c *Checkups) tellAccount(ctx context.Context, agent ports.Agent, db id.DatabaseID) error {
	record, err := c.base.Record(ctx, db)
	if err == nil {
		owner := database.Ownership{DatabaseID: record.ID, AccountID: record.AccountID}
		_, err = ports.Ask(ctx, agent, command.SetAccounts{Databases: []database.Ownership{owner}})
	}
	return err
}
