package server

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/pgversion"
)

// Finding is one thing that was looked at.
type Finding struct {
	Check   string
	Verdict Verdict
	Found   string
	Do      string // where the verdict is not OK
	Setting string // that is wrong; empty: none
}

// Verdict of a finding.
type Verdict string

// The verdicts. A notice is something to do in time.
const (
	OK     Verdict = "ok"
	Notice Verdict = "notice"
	Wrong  Verdict = "wrong"
)

// What is looked at.
const (
	CheckAgent        = "agent"
	CheckSecretOf     = "secret"
	CheckCertificate  = "certificate"
	CheckClock        = "clock"
	CheckVersion      = "version"
	CheckInstallation = "installation"
	CheckPrograms     = "programs"
	CheckPostgres     = "PostgreSQL"
	CheckPgBouncer    = "PgBouncer"
	CheckConnections  = "connections"
	CheckSlowQueries  = "slow queries"
	CheckPublic       = "public address"
)

// RenewBefore is how long before its end a certificate is worth a notice.
const RenewBefore = 14 * 24 * time.Hour

// MostApart is how far two clocks may be apart.
const MostApart = 30 * time.Second

// Judge says what of a sight is well, what is not, and what to do. version is this program's.
func (s Server) Judge(seen Survey, now time.Time, version string) []Finding {
	list := s.judgeAgent(seen.Agent, now)
	if seen.Agent.Trouble == "" {
		list = append(list, s.judgeAnswers(seen, version)...)
	}
	return append(list, judgePublic(seen.Public, now))
}

// FirstWrong is the first finding that is wrong, of those that concern the agent and its PostgreSQL; nil where none is. PgBouncer
// is started last on a new server, and customers come later still.
func FirstWrong(list []Finding) *Finding {
	i := slices.IndexFunc(list, func(f Finding) bool {
		return f.Verdict == Wrong && f.Check != CheckPublic && f.Check != CheckPgBouncer
	})
	if i < 0 {
		return nil
	}
	return &list[i]
}

// AnyWrong reports whether something has to be done now.
func AnyWrong(list []Finding) bool {
	return slices.ContainsFunc(list, func(f Finding) bool { return f.Verdict == Wrong })
}

func fine(check, found string) Finding { return Finding{Check: check, Verdict: OK, Found: found} }

func (s Server) judgeAgent(r Reach, now time.Time) []Finding {
	if r.Trouble != "" {
		return []Finding{s.troubleOf(r)}
	}
	return []Finding{fine(CheckAgent, r.Address+" answers"), fine(CheckSecretOf, "accepted"), judgeEnd(CheckCertificate, r, now)}
}

func judgeEnd(check string, r Reach, now time.Time) Finding {
	f := fine(check, "ends "+r.Ends.UTC().Format(time.DateOnly))
	if left := r.Ends.Sub(now); left < RenewBefore {
		f.Verdict, f.Do = Notice, "renew it: the new one is used within a minute of its file's change"
		f.Found += fmt.Sprintf(", in %d days", max(0, int(left/(24*time.Hour))))
	}
	return f
}

// troubleOf names the setting, the address, and what to do.
func (s Server) troubleOf(r Reach) Finding {
	f := Finding{Check: CheckAgent, Verdict: Wrong, Setting: "agentUrl"}
	ca := "is not signed by a CA that this machine knows"
	if s.CA != "" {
		ca = "is not signed by the CA that is given for it"
	}
	switch r.Trouble {
	case NoSuchHost:
		f.Found, f.Do = "the name in "+r.Address+" is unknown here", "correct the URL, or enter the name into DNS"
	case Refused:
		f.Found = "nothing listens at " + r.Address
		f.Do = "start the agent there (pgherd agent init comes before its first start), or correct the URL"
	case Silent:
		f.Found, f.Do = r.Address+" does not answer", "see whether the machine is up and no firewall is in the way"
	case NoTLS:
		f.Found, f.Do = r.Address+" does not speak TLS", "give the address of the agent's own listener"
	case UnknownCA:
		f.Check, f.Setting = CheckCertificate, "agentCaFile"
		f.Found, f.Do = "the certificate of "+r.Address+" "+ca, "give the CA that has signed it"
	case OtherName:
		f.Check = CheckCertificate
		f.Found = "the certificate of " + r.Address + " is for " + orNothing(r.Names)
		f.Do = "use a name that it has, or have one made for this name"
	case OutOfDate:
		f.Check = CheckCertificate
		f.Found = "the certificate of " + r.Address + " is out of date: it ends " + r.Ends.UTC().Format(time.DateOnly)
		f.Do = "renew it, and see that the clocks here and there are right"
	case NoCA:
		f.Check, f.Setting = CheckCertificate, "agentCaFile"
		f.Found, f.Do = "it holds no certificate in PEM", "give the CA of "+r.Address
	case Sealed:
		f.Check, f.Setting = CheckSecretOf, "keyringFile"
		f.Found, f.Do = "the stored secret of "+r.Address+" cannot be opened: "+r.Why, "use the key ring of the other hosts"
	case WrongSecret:
		f.Check, f.Setting = CheckSecretOf, "agentSecret"
		f.Found, f.Do = r.Address+" does not accept it", "give the one in the file that PGHERD_AGENT_SECRET_FILE names there"
	case NoAgent:
		f.Found, f.Do = r.Address+" is no agent: "+r.Why, "give the address of the agent's own listener"
	case Broken:
		f.Found, f.Do = r.Address+": "+r.Why, agentSays
	}
	return f
}

func orNothing(names []string) string {
	if len(names) == 0 {
		return "no name"
	}
	return strings.Join(names, ", ")
}

func (s Server) judgeAnswers(seen Survey, version string) []Finding {
	if seen.Protocol != command.Protocol {
		return []Finding{judgeClock(seen.Ahead), judgeVersion(seen, version)}
	}
	return []Finding{
		judgeClock(seen.Ahead), judgeVersion(seen, version), judgePrograms(seen.Programs), s.judgePostgres(seen),
		judgeUse(CheckPgBouncer, seen.PgBouncer, seen, startPgBouncer),
		s.judgeInstallation(seen), s.judgeConnections(seen.Connections), judgeSlowQueries(seen),
	}
}

func judgeClock(ahead time.Duration) Finding {
	f := fine(CheckClock, "as here")
	if ahead.Abs() > MostApart {
		word := "ahead of"
		if ahead < 0 {
			word = "behind"
		}
		f.Verdict, f.Do = Wrong, "set both clocks, as with chrony or systemd-timesyncd"
		f.Found = fmt.Sprintf("the server's is %s %s the one here", ahead.Abs().Round(time.Second), word)
	}
	return f
}

func judgeVersion(seen Survey, version string) Finding {
	f := fine(CheckVersion, seen.Version)
	word := "old"
	if seen.Protocol > command.Protocol {
		word = "new"
	}
	switch {
	case seen.Protocol != command.Protocol:
		f.Verdict, f.Do = Wrong, "install the same version there and on all hosts of the control plane; until then work for it waits"
		f.Found = fmt.Sprintf("%s is too %s: it has protocol %d, and the one here is %d",
			seen.Version, word, seen.Protocol, command.Protocol)
	case seen.Version != version:
		f.Found += ", and " + version + " here"
	}
	return f
}

// What to do where the agent cannot use one of them.
const (
	startPostgres  = "start it; run pgherd agent init there where that was never done; " + agentSays
	startPgBouncer = "start it with the pgbouncer.ini that the agent has written; journalctl --unit pgherd-pooler there says " +
		"why it does not"
	agentSays = "journalctl --unit pgherd-agent there says why"
)

// judgeUse is about what the agent has to be able to use.
func judgeUse(check string, usable bool, seen Survey, do string) Finding {
	if usable {
		return fine(check, "answers")
	}
	found := "the agent cannot use it"
	if len(seen.Reasons) > 0 {
		found += ": " + strings.Join(seen.Reasons, "; ")
	}
	return Finding{Check: check, Verdict: Wrong, Found: found, Do: do}
}

// judgePostgres is about which version answers, too: what is known of the server's databases holds for theirs.
func (s Server) judgePostgres(seen Survey) Finding {
	f := judgeUse(CheckPostgres, seen.Postgres, seen, startPostgres)
	if f.Verdict != OK || seen.PostgresVersion == 0 {
		return f
	}
	f.Found = fmt.Sprintf("PostgreSQL %d answers", seen.PostgresVersion)
	switch {
	case !pgversion.Supported(seen.PostgresVersion):
		f.Verdict, f.Do = Wrong, fmt.Sprintf("give a server with PostgreSQL %d to %d", pgversion.Oldest, pgversion.Newest)
	case s.PostgresVersion != 0 && s.PostgresVersion != seen.PostgresVersion:
		f.Verdict = Wrong
		f.Do = fmt.Sprintf("start PostgreSQL %d there again: a registered server keeps its version", s.PostgresVersion)
		f.Found += fmt.Sprintf(", and the databases known here are of %d", s.PostgresVersion)
	}
	return f
}

func (s Server) judgeInstallation(seen Survey) Finding {
	switch {
	case s.MayBeAnother(seen) && seen.Installation == "":
		return Finding{
			Check: CheckInstallation, Verdict: Wrong,
			Found: "the agent cannot say now which server it is (PostgreSQL down, or not in charge)",
			Do:    "start PostgreSQL there; " + agentSays,
		}
	case seen.Installation == "":
		return Finding{
			Check: CheckInstallation, Verdict: Wrong, Found: "the agent is not in charge of a server",
			Do: "run pgherd agent init there where that was never done; " + agentSays,
		}
	case s.IsAnother(seen):
		return Finding{
			Check: CheckInstallation, Verdict: Wrong, Found: "another server answers than the one whose databases are known here",
			Do: "correct the URL", Setting: "agentUrl",
		}
	}
	return fine(CheckInstallation, seen.Installation)
}

// MayBeAnother reports whether an agent that answers is not known to be this server's, whose installation is known.
func (s Server) MayBeAnother(seen Survey) bool {
	return s.Installation != "" && s.Installation != seen.Installation
}

// IsAnother reports whether an agent that answers is another server's. An agent whose PostgreSQL is down, or that is not in
// charge, does not say whose it is.
func (s Server) IsAnother(seen Survey) bool { return s.MayBeAnother(seen) && seen.Installation != "" }

// judgeConnections compares what may be sold with what there is.
func (s Server) judgeConnections(there int) Finding {
	switch {
	case s.Connections == 0:
		return fine(CheckConnections, "not counted")
	case there == 0:
		return fine(CheckConnections, fmt.Sprintf("%d may be sold; how many PostgreSQL has is not known now", s.Connections))
	case s.Connections > there:
		return Finding{
			Check: CheckConnections, Verdict: Notice, Found: fmt.Sprintf("%d may be sold, and PostgreSQL has %d", s.Connections, there),
			Do: fmt.Sprintf("raise max_connections, or set --connections %d", there), Setting: "connections",
		}
	}
	return fine(CheckConnections, fmt.Sprintf("%d may be sold, of %d", s.Connections, there))
}

// judgeSlowQueries is about what an operator may do without.
func judgeSlowQueries(seen Survey) Finding {
	switch {
	case seen.SlowQueries:
		return fine(CheckSlowQueries, "collected")
	case seen.Installation == "": // so the agent does not know this either
		return fine(CheckSlowQueries, "not known")
	}
	return fine(CheckSlowQueries, "not collected: pgherd agent init says there what to do")
}
