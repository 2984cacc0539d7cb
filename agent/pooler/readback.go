package pooler

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// ErrNotTakenOver is wrapped by the error for a PgBouncer that answered RELOAD, and said that it failed or still uses another
// state.
var ErrNotTakenOver = errors.New("pooler: PgBouncer has not taken the files over")

// readBack compares the state that PgBouncer uses with a rendered one: the mark, all entries, all login limits, the HBA file. It
// returns the logins that PgBouncer goes on holding to limits that the state no longer has.
func (c *Console) readBack(ctx context.Context, s State, files Files) (toLift []string, err error) {
	mark, err := c.mark(ctx)
	if err != nil {
		return nil, err
	}
	if mark != files.Mark {
		return nil, fmt.Errorf("%w: it shows mark %q, not %q; its log names the line", ErrNotTakenOver, mark, files.Mark)
	}
	if err := c.readBackEntries(ctx, s); err != nil {
		return nil, err
	}
	if toLift, err = c.readBackLogins(ctx, s); err != nil {
		return nil, err
	}
	return toLift, c.readBackRules(ctx, files.Canary)
}

// mark returns the mark of the state that PgBouncer has read to its end.
func (c *Console) mark(ctx context.Context) (string, error) {
	var mark string
	err := c.each(ctx, "SHOW CONFIG", func(r row) error {
		if r.text("key") == markSetting {
			mark = r.text("value")
		}
		return nil
	})
	return mark, err
}

func (c *Console) readBackEntries(ctx context.Context, s State) error {
	found, err := c.differentEntries(ctx, s, nil)
	if err == nil && len(found) > 0 {
		err = fmt.Errorf("%w: %s is %q, not %q", ErrNotTakenOver, found[0].What, found[0].Has, found[0].Want)
	}
	return err
}

// readBackRules logs in as the canary: it is refused by its own rule if that HBA file is in force, and for lack of a rule if
// not.
func (c *Console) readBackRules(ctx context.Context, canary string) error {
	s, err := dialInTurn(ctx, c.settings, canaryDatabase, canary, "")
	if err == nil {
		s.close()
		return fmt.Errorf("%w: the canary was let in", ErrNotTakenOver)
	}
	if !isRefusal(err) {
		return fmt.Errorf("%w: canary: %w", ErrUnreachable, err)
	}
	if !strings.Contains(err.Error(), "login rejected") {
		return fmt.Errorf("%w: the HBA file is not in force: %w", ErrNotTakenOver, err)
	}
	return nil
}
