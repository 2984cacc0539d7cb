//go:build linux

package soak

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/pgherd/pgherd/acceptance/soak/model"
	"github.com/pgherd/pgherd/acceptance/soak/plan"
	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/recovery"
)

var backupDeeds = map[plan.Do]deed{
	"back up": {
		api: func(ctx context.Context, d *doing) (any, error) { return d.api().Backups.Start(ctx, d.on.database()) },
		svc: func(d *doing) []string { return []string{"backups", "create", d.on.known()} },
		operator: func(d *doing) [][]string {
			return [][]string{{"database", "backup", "--database", d.on.known(), "--reason", because}}
		},
		took: func(ctx context.Context, d *doing, a answer) {
			t := d.self()
			d.begins(ctx, operationOf(a), func(s operation.Status, result answer, known time.Time) {
				if s == operation.Succeeded {
					held := d.on.rows.Between(d.begun, known)
					t.contents = &held
					t.is(result.text("filename"))
				}
			})
		},
	},
	"download": {
		api: func(ctx context.Context, d *doing) (any, error) {
			file, err := d.api().Backups.Download(ctx, d.in.database(), d.file())
			return nil, drain(file, err)
		},
		svc: func(d *doing) []string {
			return []string{"backups", "download", d.in.known(), d.on.known(), "-o", filepath.Join(d.dir, d.name+".sql.gz"), "--force"}
		},
	},
	"prove a backup": {
		api: func(ctx context.Context, d *doing) (any, error) {
			for _, err := range d.api().Certificates.ListKeys().All(ctx) {
				if err != nil {
					return nil, err
				}
			}
			return d.api().Certificates.Get(ctx, d.in.database(), d.file())
		},
		svc: func(d *doing) []string { return []string{"backups", "certificate", d.in.known(), d.on.known()} },
	},
	"delete a backup": {
		api: func(ctx context.Context, d *doing) (any, error) {
			return nil, d.api().Backups.Delete(ctx, d.in.database(), d.file())
		},
		svc:   func(d *doing) []string { return []string{"backups", "delete", d.in.known(), d.on.known(), "--yes"} },
		wants: func(d *doing) []wish { return []wish{{fact: d.in.fact("backup " + d.on.known()), value: gone}} },
	},
	"restore": {
		api: func(ctx context.Context, d *doing) (any, error) {
			if d.in.kind == plan.Single {
				return d.api().Restores.Restore(ctx, d.in.database(), d.file(),
					wire.RestoreBackup{ConfirmDisconnect: true, ConfirmShrink: true})
			}
			reserved, err := d.api().Restores.Reserve(ctx, d.in.database(),
				wire.ReserveRestore{BackupFilename: d.file(), ConfirmShrink: true}, d.key())
			if err == nil { // what nobody advances any more is ended by a batch host
				_, _ = d.api().Restores.Advance(ctx, reserved.Operation.ID)
			}
			return reserved, err
		},
		svc: func(d *doing) []string {
			return []string{"backups", "restore", d.in.known(), d.on.known(), "--yes", "--confirm-shrink"}
		},
		operator: func(d *doing) [][]string {
			return [][]string{{
				"database", "restore", "--database", d.in.known(), "--backup", d.on.known(), "--confirm-shrink", "--reason", because,
				"--yes",
			}}
		},
		took: func(ctx context.Context, d *doing, a answer) { d.replaces(ctx, a, d.held()) },
		lost: func(d *doing) { d.in.rows.Replace(d.held(), d.begun, time.Time{}) },
	},
	"upload a dump": {
		api: func(ctx context.Context, d *doing) (any, error) {
			dump := d.dump()
			sum := sha256.Sum256(dump)
			u, err := d.api().Restores.AnnounceUpload(ctx, d.on.database(),
				wire.AnnounceUpload{SizeBytes: int64(len(dump)), ChecksumSHA256: hex.EncodeToString(sum[:])})
			if err == nil {
				err = d.api().Restores.SendUpload(ctx, d.on.database(), u.UploadID, bytes.NewReader(dump), int64(len(dump)))
			}
			if err != nil {
				return nil, err
			}
			return d.api().Restores.CompleteUpload(ctx, d.on.database(),
				wire.CompleteUpload{UploadID: u.UploadID, ConfirmDisconnect: true, ConfirmShrink: true, AcceptIncomplete: true})
		},
		svc: func(d *doing) []string {
			file := filepath.Join(d.dir, d.name+".dump.gz")
			if err := os.WriteFile(file, d.dump(), 0o600); err != nil {
				d.broke("a dump that the soak writes", "%v", err)
			}
			return []string{"backups", "upload", d.on.known(), file, "--yes", "--confirm-shrink", "--accept-incomplete"}
		},
		took: func(ctx context.Context, d *doing, a answer) { d.replaces(ctx, a, model.Holding(d.step)) },
		lost: func(d *doing) { d.on.rows.Replace(model.Holding(d.step), d.begun, time.Time{}) },
	},
	"clone": clone(func(*doing, *wire.CloneDatabase) []string { return nil }),
	"clone a backup": clone(func(d *doing, b *wire.CloneDatabase) []string {
		b.Filename = new(d.file())
		return []string{"--backup", d.on.known()}
	}),
	"clone a moment": clone(func(d *doing, b *wire.CloneDatabase) []string {
		b.PointInTime = new(d.moment())
		return []string{"--at", d.moment()}
	}),
	"rewind": {
		api: func(ctx context.Context, d *doing) (any, error) {
			return d.api().Restores.Reserve(ctx, d.on.database(),
				wire.ReserveRestore{PointInTime: new(d.moment()), ConfirmShrink: true}, d.key())
		},
		svc: func(d *doing) []string {
			return []string{
				"databases", "rewind", d.on.known(), "--at", d.moment(), "--yes", "--confirm-shrink", "--idempotency-key", d.name,
			}
		},
		took: func(ctx context.Context, d *doing, a answer) { d.replaces(ctx, a, d.then()) },
		lost: func(d *doing) { d.on.rows.Replace(d.then(), d.begun, time.Time{}) },
	},
	"rescue a table": look("rescue", func(d *doing) []string { return []string{"--at", d.moment(), "--table", "soak"} },
		func(ctx context.Context, d *doing) (any, error) {
			return d.api().Recovery.RescueTables(ctx, d.on.database(),
				wire.RescueTables{PointInTime: d.moment(), Tables: []string{"soak"}}, d.key())
		}),
	"compare moments": look("diff", func(d *doing) []string { return []string{"--at", d.moment(), "--at", d.later()} },
		func(ctx context.Context, d *doing) (any, error) {
			return d.api().Recovery.CompareMoments(ctx, d.on.database(), wire.CompareMoments{From: d.moment(), To: d.later()}, d.key())
		}),
	"find a moment": look("bisect", func(d *doing) []string { return []string{"--query", counted, "--until", "> 1"} },
		func(ctx context.Context, d *doing) (any, error) {
			return d.api().Recovery.FindMoment(ctx, d.on.database(), wire.FindMoment{Query: counted, Until: "> 1"}, d.key())
		}),
	"cancel what is open": {
		api: func(ctx context.Context, d *doing) (any, error) {
			o, err := d.open(ctx)
			if err != nil {
				return nil, err
			}
			return d.api().Operations.Cancel(ctx, o.ID)
		},
		svc: func(d *doing) []string { return []string{"operations", "cancel", d.lastOperation()} },
		operator: func(d *doing) [][]string {
			return [][]string{{"operation", "cancel", "--operation", d.lastOperation()}}
		},
	},
}

// operationOf is the ID of the operation that an answer tells of.
func operationOf(a answer) string {
	for _, path := range [][]string{{"operation", "id"}, {"operationId"}, {"id"}} {
		if found := a.text(path...); found != "" {
			return found
		}
	}
	return ""
}

// file is the backup that the action is about.
func (d *doing) file() backup.Filename { return backup.Filename(d.on.known()) }

// held is what the backup holds that the action is about.
func (d *doing) held() model.Contents {
	if d.on.contents == nil {
		return d.in.rows.Ever()
	}
	return *d.on.contents
}

// replaces follows an operation that puts other contents into the place of those that a database has.
func (d *doing) replaces(ctx context.Context, a answer, by model.Contents) {
	of := d.in
	d.begins(ctx, operationOf(a), func(s operation.Status, _ answer, known time.Time) {
		if s == operation.Succeeded {
			of.rows.Replace(by, d.begun, known)
		}
	})
	of.rows.Replace(by, d.begun, time.Time{}) // until its end is known
}

// moment is one of those in which the database was there.
func (d *doing) moment() string { return recovery.Text(d.momentAt()) }

func (d *doing) momentAt() time.Time {
	since := d.begun.Sub(d.in.begun)
	return d.in.begun.Add(time.Duration(d.Choice % uint64(max(since, 1)))).Truncate(time.Second)
}

// later is another one, after it.
func (d *doing) later() string { return recovery.Text(d.momentAt().Add(time.Second)) }

// then is what the database held at the moment.
func (d *doing) then() model.Contents { return d.in.rows.Between(d.momentAt(), d.momentAt()) }

const counted = "SELECT count(*) FROM soak"

// clone makes a database of another one: as it is, or as the body and the arguments of svc that change returns have it.
func clone(change func(*doing, *wire.CloneDatabase) []string) deed {
	body := func(d *doing) (wire.CloneDatabase, []string) {
		b := wire.CloneDatabase{Name: d.name, DisplayName: d.name}
		args := change(d, &b)
		return b, args
	}
	did := deed{
		api: func(ctx context.Context, d *doing) (any, error) {
			b, _ := body(d)
			return d.api().Databases.Clone(ctx, d.in.database(), b, d.key())
		},
		svc: func(d *doing) []string {
			_, more := body(d)
			return append([]string{"databases", "clone", d.in.known(), d.name, "--idempotency-key", d.name}, more...)
		},
		took: func(ctx context.Context, d *doing, a answer) {
			b, _ := body(d)
			d.cloned(ctx, a, d.takes(b))
		},
	}
	if _, plain := body(&doing{on: &thing{}, in: &thing{}}); plain == nil {
		did.operator = func(d *doing) [][]string {
			return [][]string{{"database", "clone", "--database", d.on.known(), "--name", d.name, "--reason", because}}
		}
	}
	return did
}

// takes is what a clone begins with, as soon as it is known by when it was taken.
func (d *doing) takes(b wire.CloneDatabase) func(known time.Time) model.Contents {
	switch {
	case b.Filename != nil:
		return func(time.Time) model.Contents { return d.held() }
	case b.PointInTime != nil:
		return func(time.Time) model.Contents { return d.then() }
	}
	return func(known time.Time) model.Contents { return d.in.rows.Between(d.begun, known) }
}

// cloned takes the record of a clone, which is one when its operation has succeeded.
func (d *doing) cloned(ctx context.Context, a answer, holds func(time.Time) model.Contents) {
	t := d.self()
	t.kind = d.in.kind
	record, _ := a["database"].(map[string]any)
	if record == nil {
		record = a
	}
	made := answer(record)
	d.begins(ctx, operationOf(a), func(s operation.Status, _ answer, known time.Time) {
		if s != operation.Succeeded {
			return
		}
		t.rows.Replace(holds(known), d.begun, known)
		d.facts.Note(t.fact(status), "active", d.step, model.Done)
		d.isMade(ctx, t, made)
	})
}

// look asks for an operation that looks at moments.
func look(verb string, args func(*doing) []string, ask func(context.Context, *doing) (any, error)) deed {
	return deed{
		api: ask,
		svc: func(d *doing) []string {
			return append([]string{"databases", verb, d.on.known(), "--idempotency-key", d.name, "--timeout", "100s"}, args(d)...)
		},
		took: func(ctx context.Context, d *doing, a answer) { d.begins(ctx, operationOf(a), nil) },
	}
}

// open is the operation of the database that was begun last.
func (d *doing) open(ctx context.Context) (wire.Operation, error) {
	page, err := d.api().Operations.List(d.on.database()).Page(ctx, apiclient.Page{})
	if err == nil && len(page.Data) == 0 {
		err = errUnknown
	}
	if err != nil {
		return wire.Operation{}, err
	}
	return page.Data[0], nil
}

// nobody is an ID that nothing has.
const nobody = "00000000-0000-4000-8000-000000000000"

// lastOperation is the one that the account has begun last.
func (d *doing) lastOperation() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	for n := len(d.operations) - 1; n >= 0; n-- {
		if o := d.operations[n]; o.by == d.by && o.id != "" {
			return string(o.id)
		}
	}
	return nobody
}

// dump is one of the customer's own: a table with one row.
func (d *doing) dump() []byte {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, err := fmt.Fprintf(z, "CREATE TABLE %s (step integer);\nINSERT INTO %[1]s VALUES (%d);\n", table, d.step)
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		panic(err) // a buffer takes everything
	}
	return out.Bytes()
}

// plain is what is in a gzip file.
func plain(file io.Reader) ([]byte, error) {
	z, err := gzip.NewReader(file)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(z)
}
