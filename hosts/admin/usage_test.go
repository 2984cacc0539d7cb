package admin_test

import (
	"context"
	"encoding/csv"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/adapters/postgres"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/usage"
	"github.com/pgherd/pgherd/ports"
)

// billed puts in what databases came to in November: two of one account, one of another.
func (c console) billed(one, other string) {
	c.t.Helper()
	november := time.Date(2026, time.November, 1, 0, 0, 0, 0, time.UTC)
	store := check.Must(postgres.Open(c.t.Context(), postgres.Config{URL: c.url}))(c.t)
	defer func() { check.NoError(c.t, store.Close()) }()
	var lines []usage.Line
	for i, account := range []string{one, other, one} {
		lines = append(lines, usage.Line{
			Month: november, DatabaseID: id.DatabaseID(fmt.Sprintf("00000000-0000-4000-8000-00000000000%d", i)),
			AccountID: id.AccountID(account), Name: fmt.Sprintf("shop-%d", i),
			Sums: usage.Sums{SeenMs: 5_400_000, ActiveMs: 9_999_999, ByteHours: 21474836480, BackupByteHours: int64(i)},
		})
	}
	check.NoError(c.t, store.Update(c.t.Context(), func(ctx context.Context, tx ports.Tx) error {
		return tx.Usage().Add(ctx, nil, lines)
	}))
}

func TestBills(t *testing.T) {
	w := newConsole(t)
	account := func(email string) string {
		return text(t, w.does("account", "create", "--email="+email, "--name=Somebody", "--plan=pro"), "accountId")
	}
	one, other := account("=1+1@example.com"), account("ada@example.com")
	w.billed(one, other)

	out, err := w.run("usage", "--month=2026-11", "--csv")
	check.NoError(t, err)
	want := [][]string{
		{
			"month", "accountId", "email", "databaseId", "database", "databaseHours", "connectionHours", "byteHours", "backupByteHours",
		},
		{
			"2026-11", one, "'=1+1@example.com", "00000000-0000-4000-8000-000000000000", "shop-0", "1.5", "2.7778", "21474836480", "0",
		},
		{
			"2026-11", one, "'=1+1@example.com", "00000000-0000-4000-8000-000000000002", "shop-2", "1.5", "2.7778", "21474836480", "2",
		},
		{
			"2026-11", other, "ada@example.com", "00000000-0000-4000-8000-000000000001", "shop-1", "1.5", "2.7778", "21474836480", "1",
		},
	}
	if got := check.Must(csv.NewReader(strings.NewReader(out)).ReadAll())(t); !reflect.DeepEqual(got, want) {
		t.Errorf("%q", got)
	}
	if got := names(w.lists("usage", "--month=2026-11", "--account=ada@example.com"), "database"); fmt.Sprint(got) != "[shop-1]" {
		t.Errorf("of one account: %s", got)
	}
	out, err = w.run("usage", "--month=2026-11")
	for line := range strings.Lines(out) {
		if utf8.RuneCountInString(line) > 81 {
			t.Errorf("prints %q", line)
		}
	}
	if err != nil || !strings.Contains(out, "(all)") || !strings.Contains(out, "60 GiB") || !strings.Contains(out, "shop-2") {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err := w.run("usage", "--month=2026-10"); err != nil || out != "none\n" {
		t.Errorf("a month without usage: %v, %q", err, out)
	}
	if out, err := w.run("usage", "--month=2026-10", "--csv"); err != nil || strings.Count(out, "\n") != 1 {
		t.Errorf("a file without usage: %v, %q", err, out)
	}
	w.refuses("month: must be a month as 2026-11", "usage", "--month=11/2026")
	w.refuses("account: no account is called", "usage", "--account=nobody@example.com")
	w.refuses("--csv prints no JSON", "usage", "--csv", "--json")
}
