package settings

import (
	"slices"
	"testing"

	"github.com/pgherd/pgherd/agent/ledger"
	"github.com/pgherd/pgherd/core/command"
)

// Profile, quota and what others have set never undo one another: the statements lead from whatever is stored to what is wanted,
// and take back nothing that the service has not set.
func TestStatementsOfSettings(t *testing.T) {
	profile := settings{timeouts: &command.Timeouts{StatementMs: 15_000, LockMs: 1_000, IdleInTransactionMs: 5_000}}
	another := settings{timeouts: &command.Timeouts{StatementMs: 60_000, LockMs: 1_000, IdleInTransactionMs: 5_000}}
	both := settings{timeouts: profile.timeouts, readOnly: true}
	here := func(part, name, value string) storedSetting {
		return storedSetting{part: part, here: true, name: name, value: value}
	}
	inForce := []storedSetting{
		here("", ledger.StatementTimeout, "15000"), here("", ledger.LockTimeout, "1000"), here("", ledger.IdleTimeout, "5000"),
		here(ownerPart, ledger.StatementTimeout, "15000"), here(ownerPart, ledger.LockTimeout, "1000"),
		here(ownerPart, ledger.IdleTimeout, "5000"),
	}
	lifted := slices.Clone(inForce)
	lifted[3].value = "0"
	liftedOfAnother := slices.Clone(lifted)
	liftedOfAnother[0].value = "60000"
	const database, owner = `ALTER DATABASE "d" `, `ALTER ROLE "d" IN DATABASE "d" `
	for what, c := range map[string]struct {
		ours, wanted settings
		stored       []storedSetting
		want         []string
	}{
		"nothing, and nothing wanted": {},
		"nothing ours": {
			stored: []storedSetting{here(ownerPart, ledger.StatementTimeout, "15000"), here("", ledger.LockTimeout, "7")},
		},
		"a profile": {
			wanted: profile, stored: []storedSetting{here(ownerPart, ledger.StatementTimeout, "1h")},
			want: []string{
				database + "SET statement_timeout = '15000'", owner + "SET statement_timeout = '15000'",
				database + "SET lock_timeout = '1000'", owner + "SET lock_timeout = '1000'",
				database + "SET idle_in_transaction_session_timeout = '5000'", owner + "SET idle_in_transaction_session_timeout = '5000'",
			},
		},
		"again": {ours: profile, wanted: profile, stored: inForce},
		"a quota beside a profile": {
			ours: profile, wanted: both, stored: inForce, want: []string{database + "SET default_transaction_read_only = 'on'"},
		},
		"a quota lifted beside a profile": {
			ours: both, wanted: profile, stored: append([]storedSetting{here("", ledger.ReadOnlyDefault, "on")}, inForce...),
			want: []string{database + "RESET default_transaction_read_only"},
		},
		"what the owner has lifted stays beside a quota": {
			ours: profile, wanted: both, stored: lifted, want: []string{database + "SET default_transaction_read_only = 'on'"},
		},
		"what the owner has lifted is set by another profile": {
			ours: another, wanted: profile, stored: liftedOfAnother,
			want: []string{database + "SET statement_timeout = '15000'", owner + "SET statement_timeout = '15000'"},
		},
		"the ledger knows, the database is another": {
			ours: both, wanted: settings{readOnly: true}, want: []string{database + "SET default_transaction_read_only = 'on'"},
		},
		"a profile taken back": {
			ours: profile, stored: lifted,
			want: []string{
				database + "RESET statement_timeout", database + "RESET lock_timeout", owner + "RESET lock_timeout",
				database + "RESET idle_in_transaction_session_timeout", owner + "RESET idle_in_transaction_session_timeout",
			},
		},
	} {
		p := settingsPlan{
			Database: ledger.Database{Name: "d"}, wanted: c.wanted, seen: settingsSeen{ours: c.ours, owner: true, all: c.stored},
		}
		got := p.statements()
		if got = got[:len(got)-1]; !slices.Equal(got, c.want) {
			t.Errorf("%s:\n%q, want\n%q", what, got, c.want)
		}
	}
}

// writtenTimes are times as customers may store them, and what they are in milliseconds.
var writtenTimes = map[string]int64{
	"0": 0, "60000": 60_000, "+7": 7, "77s": 77_000, "1min": 60_000, " 2 d ": 172_800_000, "\t3\nh\v": 10_800_000,
	"0x3c": 60, "0X3Cs": 60_000, "010": 8, "010min": 480_000, "0x1e3": 483, "00": 0, "0d": 0,
	"1.5h": 5_400_000, ".5s": 500, "5.": 5, "010.5": 10, "010.5s": 10_500, "1e3": 1000,
	"1.5e3s": 1_500_000, "2E-1min": 12_000, "010e1": 100,
	"900us": 1, "400us": 0, "0.5": 0, "1.5": 2, "2.5ms": 2, "0.0004s": 0, "1.0006s": 1001,
	"0.3d": 25_200_000, "0.0001h": 0, "0.01h": 60_000,
	"-0": 0, "-0.4": 0, "2147483647": 2_147_483_647, "24.8d": 2_142_000_000, "2147483647000us": 2_147_483_647,
}

func TestTimesAsPostgreSQLTakesThem(t *testing.T) {
	for text, want := range writtenTimes {
		if got := inMilliseconds(text); got != want {
			t.Errorf("%q is %d ms, want %d", text, got, want)
		}
	}
	if got := inMilliseconds("x"); got != 0 {
		t.Errorf("what is no time is %d ms", got)
	}
}
