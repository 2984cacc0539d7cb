package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/pgherd/pgherd/acceptance/stack"
)

const (
	mostToVerify     = 1.5 // times what it takes by hand
	mostWhenVerified = 150 * mebibyte
)

// measureVerified takes verified backups. By hand it is a dump into a file, from that into a new database, and a dump of this,
// which has to be the same.
func measureVerified(ctx context.Context, b *bench) (rows []row, err error) {
	text, err := b.withText(ctx)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(b.verifyBackups(ctx, true), b.restartAgent(ctx)); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.verifyBackups(ctx, false)) }()
	m, err := watch(b.agent.Pid())
	if err != nil {
		return nil, err
	}
	t, err := inTurn((b.runs+1)/2, way{measured: func(int) error {
		done, err := stack.BackUp(ctx, b.client.Client, text.ID)
		if err == nil && done.VerifiedAt == nil {
			err = errors.New("the backup is not verified")
		}
		return err
	}}, way{
		measured: func(int) error { return b.verifyByHand(ctx, text.Name) },
		after:    func(int) error { return b.sql(ctx, "DROP DATABASE by_hand") },
	})
	used, watched := m.end()
	if err := errors.Join(err, watched); err != nil {
		return nil, err
	}
	what := fmt.Sprintf("backup of a database of %s, verified, against dump, restore and cmp", amount(text.size))
	return []row{
		t.row(what, mostToVerify),
		below("  peak memory of the agent", used.peak, nil, mostWhenVerified),
	}, nil
}

func (b *bench) verifyByHand(ctx context.Context, database string) error {
	file := b.path("verified.sql.gz")
	const script = `"$PG_DUMP" --no-owner --no-privileges --restrict-key=by "$1" | gzip -6 > "$3" &&
		gunzip -c "$3" | sed '1,30{/^SET transaction_timeout/d}' | "$PSQL" -X -q -o /dev/null -v ON_ERROR_STOP=1 "$2" &&
		gunzip -c "$3" | grep -v -e ^-- -e '^$' > "$3.1" &&
		"$PG_DUMP" --no-owner --no-privileges --restrict-key=by "$2" | grep -v -e ^-- -e '^$' | cmp - "$3.1"`
	err := b.sql(ctx, "CREATE DATABASE by_hand TEMPLATE template0")
	if err == nil {
		err = b.script(ctx, script, b.at(database), b.at("by_hand"), file)
	}
	return errors.Join(err, os.Remove(file), os.Remove(file+".1"))
}

func (b *bench) verifyBackups(ctx context.Context, on bool) error {
	_, err := b.stack.Admin(ctx, "account", "set", "--account", b.account.ID, fmt.Sprintf("--verify-backups=%t", on))
	return err
}

// restartAgent puts another agent in the place of the one that runs.
func (b *bench) restartAgent(ctx context.Context) error {
	if err := b.agent.Stop(ctx); err != nil {
		return err
	}
	next, err := b.stack.LaunchAgent("")
	if err != nil {
		return err
	}
	b.agent = next
	return b.stack.AwaitAgent(ctx, next)
}
