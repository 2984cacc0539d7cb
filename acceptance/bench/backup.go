package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/hosts/cluster"
)

const mostSizeDifference = 0.1

// measureBackup takes backups through the API, from the request until the operation is seen to have succeeded, and with the same
// pg_dump and gzip, in turn.
func measureBackup(ctx context.Context, b *bench) ([]row, error) {
	text, err := b.withText(ctx)
	if err != nil {
		return nil, err
	}
	var size int64
	byAPI := way{measured: func(int) error {
		done, err := stack.BackUp(ctx, b.client.Client, text.ID)
		text.last = &done
		return err
	}}
	byHand := way{measured: func(int) (err error) {
		size, err = b.dumpByHand(ctx, text.Name)
		return err
	}}
	t, err := inTurn((b.runs+1)/2, byAPI, byHand)
	if err != nil {
		return nil, err
	}
	sizes := float64(text.last.SizeBytes) / float64(size)
	what := fmt.Sprintf("backup of a database of %s, unverified, against pg_dump | gzip -6", amount(text.size))
	return []row{
		t.row(what, 0.5),
		{
			measure: "  size of its file", ours: amount(text.last.SizeBytes), baseline: amount(size),
			ratio: sizes, limit: "1 ± 0.10", met: sizes >= 1-mostSizeDifference && sizes <= 1+mostSizeDifference,
		},
	}, nil
}

// at is a database for PostgreSQL's own programs, without the password.
func (b *bench) at(database string) string {
	s := b.stack.Server
	return fmt.Sprintf("host=%s port=%d user=%s dbname=%s sslmode=disable", s.Host(), s.Port(), cluster.Superuser, database)
}

// script runs a script of PostgreSQL's own programs.
func (b *bench) script(ctx context.Context, script string, args ...string) error {
	cmd := exec.CommandContext(ctx, "sh", append([]string{"-c", script, "sh"}, args...)...)
	cmd.Env = append(os.Environ(), "PGPASSWORD="+b.stack.Server.Password(), "PG_DUMP="+b.tools.PgDump, "PSQL="+b.tools.Psql)
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		return errors.Join(fmt.Errorf("%s: %s", script, out), err)
	}
	return nil
}

// dumpByHand is the baseline: no snapshot of its own, no manifest, no digest, no fsync. It returns the size of the file.
func (b *bench) dumpByHand(ctx context.Context, database string) (int64, error) {
	file := b.path("by-hand.sql.gz")
	err := b.script(ctx, `"$PG_DUMP" --no-owner --no-privileges "$1" | gzip -6 > "$2"`, b.at(database), file)
	if err != nil {
		return 0, err
	}
	info, err := os.Stat(file)
	if err != nil {
		return 0, err
	}
	return info.Size(), os.Remove(file)
}
