package checkups

import (
	"context"
	"errors"
	"math"
	"net/netip"
	"slices"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/controlplane/settings"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/deletion"
	"github.com/pgherd/pgherd/core/doctor"
	"github.com/pgherd/pgherd/core/drill"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/core/upload"
	"github.com/pgherd/pgherd/ports"
)

// checkup is one comparison of a server.
type checkup struct {
	base   *base.Base
	server server.Server
	agent  ports.Agent

	busy   map[string]bool // names of databases that work is under way on
	serves bool            // some database is in service on both sides
	files  doctor.Files
	found  []doctor.Finding
}

func (l *checkup) all(ctx context.Context) (err error) {
	if l.files.Behind, err = l.behind(ctx); err != nil {
		return err
	}
	if err := l.databases(ctx); err != nil {
		return err
	}
	if err := l.strays(ctx); err != nil {
		return err
	}
	if err := l.archive(ctx); err != nil {
		return err
	}
	if err := l.snapshots(ctx); err != nil {
		return err
	}
	return l.listFiles(ctx)
}

// databases goes through what both sides have, part by part of the agent's list.
func (l *checkup) databases(ctx context.Context) error {
	for after, more := id.DatabaseID(""), true; more; {
		from := after
		if from == "" {
			from = command.InventoryFromStart
		}
		part, err := ask(ctx, l, command.AskInventory{After: from})
		if err != nil {
			return err
		}
		last := id.DatabaseID("")
		if more = part.More && len(part.Databases) > 0; more {
			last = part.Databases[len(part.Databases)-1].DatabaseID
		}
		if err := l.compare(ctx, after, last, part.Databases); err != nil {
			return err
		}
		after = last
	}
	return nil
}

// compare compares the databases in a range of IDs.
func (l *checkup) compare(ctx context.Context, after, last id.DatabaseID, list []command.InventoryDatabase) error {
	has := map[id.DatabaseID]*command.InventoryDatabase{}
	for i := range list {
		has[list[i].DatabaseID] = &list[i]
	}
	records, err := ports.Read(ctx, l.base.Store, func(ctx context.Context, tx ports.Tx) ([]database.Record, error) {
		return tx.Storage().Between(ctx, l.server.ID, after, last)
	})
	if err != nil {
		return err
	}
	for _, r := range records {
		want, err := ports.Read(ctx, l.base.Store, func(ctx context.Context, tx ports.Tx) (*doctor.Database, error) {
			return l.wanted(ctx, tx, r)
		})
		if err != nil {
			return err
		}
		l.busy[r.Name] = want.Busy
		if _, serves := doctor.Open(r.Status); serves && has[r.ID] != nil && has[r.ID].Made && has[r.ID].Isolated == "" {
			l.serves = true
		}
		l.found = append(l.found, doctor.ExamineDatabase(want, has[r.ID])...)
		delete(has, r.ID)
	}
	for _, d := range list {
		if has[d.DatabaseID] == nil {
			continue
		}
		if err := l.unexpected(ctx, d); err != nil {
			return err
		}
	}
	return nil
}

// unexpected is about a database that the server has, and that is not one of its own by the metadata. One that moves is nothing
// to be told.
func (l *checkup) unexpected(ctx context.Context, d command.InventoryDatabase) error {
	elsewhere, moves, stands := "", false, false
	err := l.base.Store.View(ctx, func(ctx context.Context, tx ports.Tx) error {
		r, err := tx.Databases().Get(ctx, d.DatabaseID)
		if err != nil {
			return base.NotFound(err, nil)
		}
		if moves, err = busy(ctx, tx, r.ID); err != nil || moves {
			return err
		}
		on, err := tx.Servers().Get(ctx, r.ServerID)
		elsewhere, moves = on.Name, r.ServerID == l.server.ID // it has come just now
		if err == nil {
			var made operation.Operation
			made, err = tx.Operations().Get(ctx, d.MadeBy)
			// One that has failed was given up while the server was away, and has left this.
			stands, err = err == nil && made.Status == operation.Succeeded, base.NotFound(err, nil)
		}
		return err
	})
	switch {
	case err != nil:
		return err
	case moves:
		l.busy[d.Name] = true
		l.files.Databases[d.DatabaseID] = doctor.FilesOf{Name: d.Name, Busy: true}
	case elsewhere != "":
		l.found = append(l.found, doctor.Finding{
			Code: doctor.DatabaseElsewhere, DatabaseID: d.DatabaseID, Subject: d.Name, Want: "at " + elsewhere, Has: "here",
			// Nobody ever got into one of an operation that was not over: it is not the one that customers have.
			OperationID: d.MadeBy, Epoch: math.MaxInt64, NoRepair: l.files.Behind || stands || d.Open,
		})
	default:
		l.found = append(l.found, doctor.ExamineDatabase(nil, &d)...)
	}
	return nil
}

// wanted reads what the metadata say of a database, and of its files. What an operation or a change is under way on is read no
// further.
func (l *checkup) wanted(ctx context.Context, tx ports.Tx, r database.Record) (*doctor.Database, error) {
	want := &doctor.Database{Record: r, Wanted: settings.Desired(r)}
	of := doctor.FilesOf{Name: r.Name}
	var err error
	want.Busy, err = busy(ctx, tx, r.ID)
	of.Busy = want.Busy
	if err == nil && r.Status == database.Deleted {
		var scene deletion.Scene
		scene, err = tx.Deletions().Get(ctx, r.ID)
		want.MayLack = scene.Tombstone.StatusBefore == database.Error
	}
	if err == nil && r.Status == database.Purging && want.Busy {
		want.Refused, err = refusal(ctx, tx, r.ID)
	}
	if err == nil && !want.Busy {
		err = errors.Join(readLogins(ctx, tx, want), readNetworks(ctx, tx, want), l.readKey(ctx, tx, want))
		if err == nil {
			of.Backups, err = tx.Backups().List(ctx, r.ID, ports.Page{})
		}
		if err == nil {
			of.Names, err = tx.Backups().Names(ctx, r.ID)
		}
	}
	l.files.Databases[r.ID] = of
	return want, err
}

// refusal is why the server refuses the open operation of a database, as far as it does.
func refusal(ctx context.Context, tx ports.Tx, db id.DatabaseID) (string, error) {
	o, err := tx.Operations().Open(ctx, db)
	if errors.Is(err, ports.ErrNoRow) {
		return "", nil
	}
	return o.ErrorText, err
}

// busy reports whether anything is done to a database, or with it.
func busy(ctx context.Context, tx ports.Tx, db id.DatabaseID) (bool, error) {
	err := base.Idle(ctx, tx, db)
	if fault.Has(err, fault.DatabaseStateConflict) {
		return true, nil
	}
	return false, err
}

func readLogins(ctx context.Context, tx ports.Tx, want *doctor.Database) error {
	logins, err := tx.Logins().List(ctx, want.ID)
	if err != nil {
		return err
	}
	for _, l := range logins {
		want.Logins = append(want.Logins, doctor.Login{
			Login: l.Login, Username: l.Username, Verifier: l.Verifier, Generation: l.Generation,
		})
	}
	want.Roles, err = tx.Roles().List(ctx, want.ID)
	return err
}

// readKey opens the key of the backups, as far as the key ring can.
func (l *checkup) readKey(ctx context.Context, tx ports.Tx, want *doctor.Database) error {
	key, err := tx.BackupKeys().Get(ctx, want.ID)
	if err != nil {
		return err
	}
	want.BackupKey, err = l.base.Secrets.Open(key.Sealed, key.SecretContext())
	if errors.Is(err, ports.ErrNoRing) {
		return err
	}
	return nil // a key that cannot be opened is a finding
}

func readNetworks(ctx context.Context, tx ports.Tx, want *doctor.Database) error {
	entries, err := tx.Allowlist().List(ctx, want.ID)
	if err != nil {
		return err
	}
	for _, e := range entries {
		n, err := netip.ParsePrefix(e.CIDR)
		if err != nil {
			return err
		}
		want.Networks = append(want.Networks, n)
	}
	return nil
}

// strays compares what the server has beside the databases.
func (l *checkup) strays(ctx context.Context) error {
	has, err := ask(ctx, l, command.AskStrays{})
	if err != nil {
		return err
	}
	of, err := ports.Read(ctx, l.base.Store, func(ctx context.Context, tx ports.Tx) (map[id.OperationID]doctor.Operation, error) {
		return operations(ctx, tx, has)
	})
	if err != nil {
		return err
	}
	around := doctor.Around{Busy: l.busy, Serves: l.serves, Behind: l.files.Behind}
	l.found = append(l.found, doctor.ExamineStrays(has, of, around)...)
	want, err := ports.Read(ctx, l.base.Store, func(ctx context.Context, tx ports.Tx) ([]doctor.Forward, error) {
		return l.forwards(ctx, tx)
	})
	if err == nil {
		l.found = append(l.found, doctor.ExamineForwards(has, want, around, l.base.Clock.Now())...)
	}
	return err
}

// forwards are those that the server is to have.
func (l *checkup) forwards(ctx context.Context, tx ports.Tx) (list []doctor.Forward, err error) {
	all, err := tx.Forwards().List(ctx)
	for _, f := range all {
		if f.ServerID != l.server.ID {
			continue
		}
		r, err := tx.Databases().Get(ctx, f.DatabaseID)
		if err != nil {
			return nil, err
		}
		under, err := busy(ctx, tx, f.DatabaseID)
		if err != nil {
			return nil, err
		}
		list = append(list, doctor.Forward{
			Forward: f, Name: r.Name, Passing: under || r.Status.Gone() || r.ServerID == l.server.ID,
		})
	}
	return list, err
}

// behind reports whether the metadata lack operations that the server has heard of.
func (l *checkup) behind(ctx context.Context) (bool, error) {
	heard, err := ask(ctx, l, command.AskHeard{})
	if err != nil {
		return false, err
	}
	lacking, err := l.base.Lacking(ctx, heard)
	return len(lacking) > 0, err
}

// operations are those with a record that an agent has named.
func operations(ctx context.Context, tx ports.Tx, has command.Strays) (map[id.OperationID]doctor.Operation, error) {
	of := map[id.OperationID]doctor.Operation{}
	for _, op := range doctor.Named(has) {
		o, err := tx.Operations().Get(ctx, op)
		switch {
		case errors.Is(err, ports.ErrNoRow):
			continue
		case err != nil:
			return nil, err
		}
		of[op] = doctor.Operation{Known: true, Open: !o.Status.Final(), Epoch: o.Epoch}
	}
	return of, nil
}

// archive compares the key of the archive, where one is kept, as far as the key ring can open it, and says whether it is proven.
func (l *checkup) archive(ctx context.Context) error {
	has, err := ask(ctx, l, command.AskCapabilities{})
	if err != nil || has.Archive == nil {
		return err
	}
	key, err := l.base.Secrets.Open(l.server.SealedArchiveKey, l.server.ArchiveContext())
	if errors.Is(err, ports.ErrNoRing) {
		return err
	}
	l.found = append(l.found, doctor.ExamineArchive(l.server.Name, key, *has.Archive)...)
	last, err := ports.Read(ctx, l.base.Store, func(ctx context.Context, tx ports.Tx) (*drill.Drill, error) {
		d, err := tx.Drills().Last(ctx, ports.DrillFilter{ServerID: l.server.ID})
		if errors.Is(err, ports.ErrNoRow) {
			return nil, nil //nolint:nilnil // that there is none is no error
		}
		return &d, err
	})
	if err == nil {
		l.found = append(l.found, doctor.ExamineDrill(l.server.Name, last)...)
	}
	return err
}

// snapshots looks at those of the metadata, where the server is to keep them, and the process knows whose they are.
func (l *checkup) snapshots(ctx context.Context) error {
	of, err := l.base.Snapshots.Installation(ctx)
	if err != nil || of == "" {
		return err
	}
	holders, err := l.base.Holders(ctx)
	if err != nil || !slices.ContainsFunc(holders, func(s server.Server) bool { return s.ID == l.server.ID }) {
		return err
	}
	has, err := ask(ctx, l, command.AskSnapshots{})
	if command.RefusedFor(err, command.ReasonStorageAway) { // which is a finding anyway
		return nil
	}
	if err == nil {
		l.found = append(l.found, doctor.ExamineSnapshots(l.server.Name, has.Newest(of), l.server.CreatedAt, l.base.Clock.Now())...)
	}
	return err
}

// listFiles compares the files, all at once: those of one backup may be in two parts of the list.
func (l *checkup) listFiles(ctx context.Context) error {
	all, err := base.Files(ctx, l.agent)
	switch {
	case command.RefusedFor(err, command.ReasonStorageAway):
		l.found = append(l.found, doctor.Finding{Code: doctor.StorageAway, Subject: l.server.Name})
		return nil
	case err != nil:
		return &silence{err}
	}
	err = l.base.Store.View(ctx, func(ctx context.Context, tx ports.Tx) (err error) {
		if l.files.Uploads, err = uploadsOf(ctx, tx, all); err != nil {
			return err
		}
		return l.kept(ctx, tx, all)
	})
	if err == nil {
		l.found = append(l.found, doctor.ExamineFiles(l.files, all)...)
	}
	return err
}

// kept adds the backups that this server alone has of databases which have left it.
func (l *checkup) kept(ctx context.Context, tx ports.Tx, files []command.StoredFile) error {
	for _, db := range doctor.Folders(files) {
		if _, here := l.files.Databases[db]; here {
			continue
		}
		all, err := tx.Backups().List(ctx, db, ports.Page{})
		if err != nil {
			return err
		}
		var of doctor.FilesOf
		for _, b := range all {
			if b.KeptBy == l.server.ID {
				of.Names = append(of.Names, b.Filename)
			}
		}
		l.files.Databases[db] = of
	}
	return nil
}

// uploadsOf are the records of the uploads that have a file.
func uploadsOf(ctx context.Context, tx ports.Tx, files []command.StoredFile) (map[id.UploadID]upload.Upload, error) {
	known := map[id.UploadID]upload.Upload{}
	for _, f := range files {
		db, of, isUpload := doctor.ParseUpload(f.Path)
		if !isUpload {
			continue
		}
		u, err := tx.Uploads().Get(ctx, db, of)
		switch {
		case errors.Is(err, ports.ErrNoRow):
		case err != nil:
			return nil, err
		default:
			known[of] = u
		}
	}
	return known, nil
}
