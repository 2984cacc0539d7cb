package fakeagent

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/pgversion"
	"github.com/pgherd/pgherd/ports"
)

// agent implements ports.Agent on a server.
type agent struct{ s *Server }

// Do implements ports.Agent.
func (a agent) Do(ctx context.Context, f ports.Fence, c command.Command) (json.RawMessage, error) {
	call := callOf(c)
	call.Fence, call.Step = f, command.Step(c)
	return a.s.encoded(ctx, call, func() (any, error) {
		return a.s.told(f, c)
	})
}

// Ask implements ports.Agent.
func (a agent) Ask(ctx context.Context, q command.Question) (json.RawMessage, error) {
	return a.s.encoded(ctx, callOf(q), func() (any, error) {
		return a.s.asked(q)
	})
}

// Open implements ports.Agent.
func (a agent) Open(ctx context.Context, q command.Question) (opened ports.File, err error) {
	err = a.s.answer(ctx, callOf(q), func() error {
		opened, err = a.s.open(ctx, q)
		return err
	})
	if err != nil {
		return ports.File{}, err
	}
	return opened, nil
}

// callOf describes a call by the type of what is asked for, and by those of its fields that say what it is about.
func callOf(what any) Call {
	v := reflect.ValueOf(what)
	text := func(field string) string {
		if f := v.FieldByName(field); f.IsValid() {
			return f.String()
		}
		return ""
	}
	return Call{
		Method: v.Type().Name(), Database: id.DatabaseID(text("DatabaseID")), Filename: backup.Filename(text("Filename")),
		Username: text("Username"),
	}
}

// encoded is answer for what comes back as JSON.
func (s *Server) encoded(ctx context.Context, c Call, do func() (any, error)) (text json.RawMessage, err error) {
	err = s.answer(ctx, c, func() error {
		answer, err := do()
		if err != nil {
			return err
		}
		text, err = json.Marshal(answer)
		return err
	})
	if err != nil {
		return nil, err
	}
	return text, nil
}

// told has a command admitted and carries it out, unless it is done.
func (s *Server) told(f ports.Fence, c command.Command) (any, error) {
	if _, closing := c.(command.Close); closing {
		return s.close(f)
	}
	admitted, err := s.ledger.admit(f, c)
	if err == nil && admitted.done {
		return admitted.result, nil
	}
	var result any
	if err == nil {
		result, err = s.carryOut(f, c)
	}
	if err != nil {
		return nil, s.withGenerations(err, c)
	}
	if !running(result) {
		s.ledger.conclude(c, admitted, result)
	}
	return result, nil
}

// running reports whether a result says that the work on the command goes on.
func running(result any) bool {
	switch r := result.(type) {
	case command.BackupReport:
		return r.State == command.BackupRunning
	case command.ExtensionReport:
		return r.State == command.ExtensionRunning
	case command.ExtensionProof:
		return r.State == command.ExtensionRunning
	case command.LoadReport:
		return r.State == command.LoadRunning
	case command.FollowReport:
		return r.State != command.FollowFailed
	case command.Looked:
		return r.Standing().State == command.LookRunning
	}
	return false
}

func (s *Server) carryOut(f ports.Fence, c command.Command) (any, error) {
	switch c := c.(type) {
	case command.EnsureDatabase:
		return command.None{}, s.makeDatabase(f, c)
	case command.SetAccess:
		return onDatabase(s, c.DatabaseID, func(d *databaseState) (command.None, error) { return d.setAccess(c) })
	case command.SetAllowlist:
		return onDatabase(s, c.DatabaseID, func(d *databaseState) (command.None, error) { return d.setAllowlist(c) })
	case command.Configure:
		return onDatabase(s, c.DatabaseID, func(d *databaseState) (command.Configured, error) { return d.configure(c), nil })
	case command.PrepareRole:
		return onDatabase(s, c.DatabaseID, func(d *databaseState) (command.None, error) { return s.prepareRole(f, d, c) })
	case command.EnsureOverlay:
		return onDatabase(s, c.DatabaseID, func(d *databaseState) (command.None, error) { return s.ensureOverlay(d) })
	case command.AdmitRole:
		return onDatabase(s, c.DatabaseID, func(d *databaseState) (command.None, error) { return s.admitRole(d, c) })
	case command.ChangeLogin:
		return onDatabase(s, c.DatabaseID, func(d *databaseState) (any, error) { return s.changeLogin(d, c) })
	case command.RemoveRole:
		return onDatabase(s, c.DatabaseID, func(d *databaseState) (any, error) { return s.removeRole(d, c) })
	case command.Backup:
		if c.At != nil {
			return s.recoverThen(f.OperationID, c)
		}
		if c.Lost != "" {
			return s.recoverLost(f.OperationID, c)
		}
		return onDatabase(s, c.DatabaseID, func(d *databaseState) (any, error) { return s.advance(f.OperationID, d, c), nil })
	case command.ChangeExtension:
		return onDatabase(s, c.DatabaseID, func(d *databaseState) (any, error) { return s.changeExtension(f.OperationID, d, c), nil })
	case command.QualifyExtension:
		return s.qualifyExtension(f.OperationID, c), nil
	case command.Load:
		return onDatabase(s, c.DatabaseID, func(d *databaseState) (command.LoadReport, error) { return s.load(f.OperationID, d, c) })
	case command.Switch:
		return onDatabase(s, c.DatabaseID, func(d *databaseState) (command.Switched, error) { return s.replace(f.OperationID, d, c) })
	case command.Discard:
		return onDatabase(s, c.DatabaseID, func(*databaseState) (command.None, error) { return s.discard(f.OperationID) })
	case command.Rescue:
		return s.rescue(f.OperationID, c)
	case command.CompareMoments:
		return s.compare(f.OperationID, c)
	case command.FindMoment:
		return s.find(f.OperationID, c)
	case command.Isolate:
		return s.isolate(f, c)
	case command.Rejoin:
		return s.rejoin(f, c)
	case command.Purge:
		return s.purge(f, c)
	case command.Forward:
		return s.setForward(c)
	case command.EndForward:
		return s.endForward(c)
	case command.Welcome:
		return s.setWelcome(c)
	case command.AdmitPeer:
		return onDatabase(s, c.DatabaseID, func(*databaseState) (command.None, error) { return s.admitPeer(f.OperationID, c) })
	case command.Follow:
		return onDatabase(s, c.DatabaseID, func(d *databaseState) (command.FollowReport, error) {
			return s.follow(f.OperationID, d, c)
		})
	case command.Part:
		return onDatabase(s, c.DatabaseID, func(d *databaseState) (command.Parted, error) { return s.part(f.OperationID, d, c) })
	case command.Take:
		return onDatabase(s, c.DatabaseID, func(d *databaseState) (command.None, error) { return s.take(f.OperationID, d, c) })
	case command.Serve:
		return onDatabase(s, c.DatabaseID, func(d *databaseState) (command.None, error) { return s.serveMoved(f.OperationID, d, c) })
	case command.Depart:
		return s.depart(f.OperationID, c)
	case command.Leave:
		return s.leave(f.OperationID, c)
	}
	return nil, fmt.Errorf("fakeagent: a command of type %T", c)
}

// manyConnections is more than any test sells.
const manyConnections = 200_000

func (s *Server) asked(q command.Question) (any, error) {
	switch q := q.(type) {
	case command.AskCapabilities:
		return command.Capabilities{
			Protocol: command.Protocol + s.faults.ahead, PostgresVersion: pgversion.Default,
			Connections: manyConnections, Installation: s.installation, SlowQueries: !s.faults.countsNothing,
			NotLogical: s.notLogical(), PublicCA: s.publicCA,
			Storage: s.Storage(), Archive: s.archived(), State: command.ServerState{InCharge: true, Postgres: true, PgBouncer: true},
		}, nil
	case command.DatabaseSize:
		return onDatabase(s, q.DatabaseID, func(d *databaseState) (command.Size, error) {
			return command.Size{Bytes: d.bytes()}, nil
		})
	case command.AskMovable:
		return onDatabase(s, q.DatabaseID, func(d *databaseState) (command.Movable, error) { return s.movable(d), nil })
	case command.StorageUse:
		return s.storageUse(q), nil
	case command.AskUsage:
		return s.usage(q), nil
	case command.RecoveryWindow:
		if s.databases[q.DatabaseID] == nil {
			return nil, errNoDatabase(q.DatabaseID)
		}
		return s.window(q.DatabaseID), nil
	case command.SetArchiveKey:
		return command.None{}, s.setArchiveKey(q)
	case command.Settings:
		return onDatabase(s, q.DatabaseID, func(d *databaseState) (command.SettingsInForce, error) { return d.settingsInForce(), nil })
	case command.AskApplied:
		return s.applied(q), nil
	case command.AskInventory:
		return s.inventory(q), nil
	case command.AskBackupKey:
		if d := s.databases[q.DatabaseID]; d != nil {
			return command.BackupKey{Key: d.key}, nil
		}
		return nil, errNoDatabase(q.DatabaseID)
	case command.AskStrays:
		return s.strays(), nil
	case command.AskFiles:
		return s.fileList(q), s.reaches()
	case command.TryStorage:
		return command.StorageTried{Where: "/backups", Wrong: s.faults.storage}, nil
	case command.AskSnapshots:
		return s.keptSnapshots()
	case command.AskRights:
		return onDatabase(s, q.DatabaseID, func(d *databaseState) (command.Rights, error) { return d.rightsInside(), nil })
	case command.InspectLogin:
		return onDatabase(s, q.DatabaseID, func(d *databaseState) (command.LoginState, error) {
			return command.LoginState{Condition: d.condition(q.Username, q.Verifier)}, nil
		})
	case command.ReadOutcome:
		return command.Outcome{Done: s.ledger.did(q), Role: s.found(q)}, nil
	case command.SetAccounts:
		for _, one := range q.Databases {
			if d, found := s.databases[one.DatabaseID]; found {
				d.account = one.AccountID
			}
		}
		return command.None{}, nil
	case command.RoomForBackup:
		return onDatabase(s, q.DatabaseID, func(*databaseState) (command.None, error) { return command.None{}, s.room() })
	case command.AskHeard:
		return s.ledger.heard(), nil
	case command.Vouch:
		s.ledger.vouch(q)
		return command.None{}, nil
	case command.DeleteBackup:
		if err := s.ledger.vouchedFor(q.DatabaseID, ""); err != nil {
			return nil, err
		}
		if err := s.reaches(); err != nil {
			return nil, err
		}
		delete(s.files, fileKey{database: q.DatabaseID, filename: q.Filename})
		return command.None{}, nil
	case command.Inherit:
		return s.inherit(q)
	case command.AdoptBackup:
		return onDatabase(s, q.DatabaseID, func(*databaseState) (command.BackupReading, error) { return s.adopt(q) })
	case command.ReachPeer:
		return s.reach(q)
	case command.RereadBackup:
		return s.reread(q)
	case command.Drill:
		return s.drill(q)
	case command.OpenUpload:
		return onDatabase(s, q.DatabaseID, func(*databaseState) (command.Uploaded, error) { return s.openUpload(q) })
	case command.AskUpload:
		return s.askUpload(q)
	case command.DropUpload:
		s.dropUpload(q)
		return command.None{}, nil
	case command.SlowQueries:
		return onDatabase(s, q.DatabaseID, func(d *databaseState) (any, error) { return s.slowQueries(d, q.Order), nil })
	case command.Extensions:
		return onDatabase(s, q.DatabaseID, func(d *databaseState) (command.ExtensionList, error) { return s.extensionsOf(d), nil })
	}
	return nil, fmt.Errorf("fakeagent: a question of type %T", q)
}

// emptyDatabase is about what PostgreSQL 16 takes for a database without a table.
const emptyDatabase = 7_500_000

// onDatabase does something to a database that is in service.
func onDatabase[R any](s *Server, db id.DatabaseID, do func(*databaseState) (R, error)) (any, error) {
	if err := s.serves(db); err != nil {
		return nil, err
	}
	return do(s.databases[db])
}
