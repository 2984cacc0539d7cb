package operator

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

func TestWhichAccountIsMeant(t *testing.T) {
	entry := func(n int, email, name string) ports.AccountEntry {
		return ports.AccountEntry{Account: account.Account{ID: id.AccountID(fmt.Sprint(n))}, Email: email, Name: name}
	}
	ada := entry(1, "ada@example.com", "Ada")
	for _, c := range []struct {
		text  string
		found []ports.AccountEntry
		want  string
	}{
		{"ADA@example.com", []ports.AccountEntry{ada}, "1"},
		{"ada@example.com", nil, `account: no account is called "ada@example.com"; pgherd admin account list`},
		{"Ada", []ports.AccountEntry{ada}, "1"},
		{"Ada", []ports.AccountEntry{ada, entry(3, "eve@example.com", "Ada")},
			`account: several are called "Ada"; give the ID: 1 (of ada@example.com), 3 (of eve@example.com)`},
		{"\x1b", nil, `no account is called "\x1b"`},
	} {
		got, err := resolve(thing{"account", "account", "account list"}, c.text, candidates(c.found, ofOwner))
		if err == nil && string(got) != c.want || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %q, %v, want %s", c.text, got, err, c.want)
		}
	}
}

func TestManyOfOneNameAreNotAllListed(t *testing.T) {
	var found []candidate[id.DatabaseID]
	for n := range 100 {
		found = append(found, candidate[id.DatabaseID]{id.DatabaseID(fmt.Sprintf("id-%d", n)), "active on server db1"})
	}
	_, err := resolve(thing{"database", "database", "database list"}, "shop", found)
	if err == nil || !strings.HasSuffix(err.Error(), "id-4 (active on server db1), and others") {
		t.Error(err)
	}
}
