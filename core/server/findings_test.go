package server

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/command"
)

var now = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

func seenWell() Survey {
	ends := now.AddDate(0, 3, 0)
	return Survey{
		Agent:  Reach{Address: "https://db1:8090", Ends: ends, Names: []string{"db1"}},
		Public: Reach{Address: "db1.example.com:6432", Ends: ends}, Version: "v2", Protocol: command.Protocol, Installation: "i",
		Connections: 80, Postgres: true, PgBouncer: true,
	}
}

// Each trouble is one line that names the address, and says what to do; nothing else is said of the agent then.
func TestTroublesSayWhatToDo(t *testing.T) {
	for _, trouble := range Troubles {
		seen := seenWell()
		seen.Agent.Trouble, seen.Agent.Why, seen.Public.Trouble, seen.Public.Why = trouble, "because", trouble, "because"
		found := Server{CA: "PEM"}.Judge(seen, now, "v2")
		if len(found) != 2 || !AnyWrong(found) || FirstWrong(found) == nil {
			t.Fatalf("%s: %+v", trouble, found)
		}
		f := found[0]
		if f.Verdict != Wrong || f.Do == "" || f.Setting == "" || !strings.Contains(f.Found+f.Do, "https://db1:8090") ||
			strings.Contains(f.Found+f.Do, "\n") {
			t.Errorf("%s: %+v", trouble, f)
		}
		if p := found[1]; !strings.Contains(p.Found, "db1.example.com:6432") || trouble != UnknownCA && p.Do == "" {
			t.Errorf("%s: %+v", trouble, p)
		}
	}
}

func TestJudging(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(*Survey)
		server  Server
		check   string
		verdict Verdict
	}{
		"all well":             {func(*Survey) {}, Server{}, "", OK},
		"known installation":   {func(*Survey) {}, Server{Installation: "i"}, "", OK},
		"another installation": {func(*Survey) {}, Server{Installation: "j"}, CheckInstallation, Wrong},
		"not in charge":        {func(s *Survey) { s.Installation, s.Connections = "", 0 }, Server{}, CheckInstallation, Wrong},
		"cannot say now": {func(s *Survey) { s.Installation, s.Connections = "", 0 }, Server{Installation: "i"},
			CheckInstallation, Wrong},
		"ends soon":           {func(s *Survey) { s.Agent.Ends = now.Add(RenewBefore - 1) }, Server{}, CheckCertificate, Notice},
		"ends later":          {func(s *Survey) { s.Agent.Ends = now.Add(RenewBefore) }, Server{}, "", OK},
		"PgBouncer's ends":    {func(s *Survey) { s.Public.Ends = now.Add(time.Hour) }, Server{}, CheckPublic, Notice},
		"public name unknown": {func(s *Survey) { s.Public.Trouble = NoSuchHost }, Server{}, CheckPublic, Notice},
		"public unreachable":  {func(s *Survey) { s.Public.Trouble = Silent }, Server{}, CheckPublic, Notice},
		"public of another":   {func(s *Survey) { s.Public.Trouble = OtherName }, Server{}, CheckPublic, Wrong},
		"public without TLS":  {func(s *Survey) { s.Public.Trouble = NoTLS }, Server{}, CheckPublic, Wrong},
		"clock a bit ahead":   {func(s *Survey) { s.Ahead = MostApart }, Server{}, "", OK},
		"clock ahead":         {func(s *Survey) { s.Ahead = MostApart + time.Second }, Server{}, CheckClock, Wrong},
		"clock behind":        {func(s *Survey) { s.Ahead = -MostApart - time.Second }, Server{}, CheckClock, Wrong},
		"another version":     {func(s *Survey) { s.Version = "v1" }, Server{}, "", OK},
		"too old":             {func(s *Survey) { s.Protocol--; s.Postgres = false }, Server{}, CheckVersion, Wrong},
		"too new":             {func(s *Survey) { s.Protocol++; s.Installation = "" }, Server{}, CheckVersion, Wrong},
		"holes":               {func(s *Survey) { s.Programs = []command.Program{old(false)} }, Server{}, CheckPrograms, Notice},
		"accepted holes":      {func(s *Survey) { s.Programs = []command.Program{old(true)} }, Server{}, "", OK},
		"public at loopback":  {func(s *Survey) { s.Public.At = at("127.0.1.1") }, Server{}, CheckPublic, Notice},
		"public elsewhere":    {func(s *Survey) { s.Public.At = at("10.0.0.1") }, Server{}, "", OK},
		"PostgreSQL down":     {func(s *Survey) { s.Postgres = false }, Server{}, CheckPostgres, Wrong},
		"another PostgreSQL":  {func(s *Survey) { s.PostgresVersion = 17 }, Server{PostgresVersion: 16}, CheckPostgres, Wrong},
		"the same PostgreSQL": {func(s *Survey) { s.PostgresVersion = 18 }, Server{PostgresVersion: 18}, "", OK},
		"PostgreSQL too old":  {func(s *Survey) { s.PostgresVersion = 15 }, Server{}, CheckPostgres, Wrong},
		"PostgreSQL too new":  {func(s *Survey) { s.PostgresVersion = 19 }, Server{}, CheckPostgres, Wrong},
		"PgBouncer down":      {func(s *Survey) { s.PgBouncer = false }, Server{}, CheckPgBouncer, Wrong},
		"oversold":            {func(*Survey) {}, Server{Connections: 81}, CheckConnections, Notice},
		"sold out":            {func(*Survey) {}, Server{Connections: 80}, "", OK},
	} {
		seen := seenWell()
		c.change(&seen)
		for _, f := range c.server.Judge(seen, now, "v2") {
			want := OK
			if f.Check == c.check {
				want = c.verdict
			}
			if f.Verdict != want || (f.Do != "") != (want != OK) {
				t.Errorf("%s: %+v, want %s", name, f, want)
			}
		}
	}
}

// What an agent says is wrong stands where it cannot use something.
func TestReasonsOfTheAgent(t *testing.T) {
	seen := seenWell()
	seen.Postgres, seen.Reasons = false, []string{"not_initialized: run it", "not_in_charge: it waits"}
	const want = "the agent cannot use it: not_initialized: run it; not_in_charge: it waits"
	if f := FirstWrong((Server{}).Judge(seen, now, "v2")); f == nil || f.Check != CheckPostgres || f.Found != want {
		t.Errorf("%+v", f)
	}
}

// old is a program below its floor.
func old(accepted bool) command.Program {
	return command.Program{
		Name: "PgBouncer", Version: "PgBouncer 1.24.1", Floor: "1.26.1", BelowFloor: true, Accepted: accepted,
		Holes: []string{"CVE-1", "CVE-2"},
	}
}

func at(address string) netip.AddrPort { return netip.AddrPortFrom(netip.MustParseAddr(address), 6432) }

// What is found says what is known, and no more.
func TestWordsOfFindings(t *testing.T) {
	well := command.Program{Name: "PostgreSQL", Version: "PostgreSQL 16.16"}
	for name, c := range map[string]struct {
		change func(*Survey)
		check  string
		want   string
	}{
		"no holes": {func(s *Survey) { s.Programs = []command.Program{well} }, CheckPrograms, "no known holes"},
		"holes": {func(s *Survey) { s.Programs = []command.Program{well, old(false)} }, CheckPrograms,
			"PgBouncer 1.24.1 is below 1.26.1, with CVE-1, CVE-2"},
		"accepted": {func(s *Survey) { s.Programs = []command.Program{well, old(true)} }, CheckPrograms, "accepted by " +
			"--accept-versions, so open unless that build mends it: PgBouncer 1.24.1 is below 1.26.1, with CVE-1, CVE-2"},
		"not seen": {func(s *Survey) { s.Programs = []command.Program{{Name: "PostgreSQL"}, {Name: "pg_dump"}} }, CheckPrograms,
			"PostgreSQL, pg_dump did not say a version yet"},
		"sold": {func(*Survey) {}, CheckConnections, "65 may be sold, of 80"},
		"unknown": {func(s *Survey) { s.Connections = 0 }, CheckConnections,
			"65 may be sold; how many PostgreSQL has is not known now"},
		"looked at": {func(s *Survey) { s.Public.At = at("10.0.0.1") }, CheckPublic,
			"db1.example.com:6432 has TLS; its certificate ends 2027-02-23; looked at 10.0.0.1:6432"},
		"nobody else's": {func(s *Survey) { s.Public.At = at("::1") }, CheckPublic,
			"db1.example.com:6432 has TLS; its certificate ends 2027-02-23; looked at [::1]:6432, which only this machine reaches"},
	} {
		seen := seenWell()
		c.change(&seen)
		list := Server{Connections: 65}.Judge(seen, now, "v2")
		if i := slices.IndexFunc(list, func(f Finding) bool { return f.Check == c.check }); list[i].Found != c.want {
			t.Errorf("%s: %q, want %q", name, list[i].Found, c.want)
		}
	}
}

func TestWhatStandsOnAServer(t *testing.T) {
	if err := (Contents{Sold: 5}).Removable("db1"); err != nil {
		t.Error(err)
	}
	err := Contents{Databases: 2, Deleted: 1, Backups: 3, Operations: 1, Changes: 1, Kept: 2}.Removable("db1")
	const want = "db1 still has 2 databases, 1 deleted database, 3 backups, 1 open operation, " +
		"1 pending change of a login, 2 backups that did not come along with their databases"
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Error(err)
	}
}
