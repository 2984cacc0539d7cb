package base

import (
	"context"
	"fmt"
	"time"

	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/server"
)

// CheckGone checks that a server is permanently gone, as an operator says. It must not take new databases, nothing may answer at
// its agent's address, and it must not answer batch hosts: perhaps only this machine cannot reach it. VALIDATION_ERROR
// on "serverGone".
func (p *Base) CheckGone(ctx context.Context, of id.ServerID) error {
	s, seen, err := p.survey(ctx, of)
	switch {
	case err != nil:
		return err
	case s.Enabled:
		return fault.Invalid("serverGone", "%s still takes new databases: run pgherd admin server disable --server %s", s.Name, s.ID)
	}
	elsewhere := fmt.Sprintf("; where %s is gone for good and its address another machine's, give it one that leads nowhere: "+
		"pgherd admin server set --server %s --agent-url https://gone.invalid --unchecked", s.Name, s.ID)
	switch seen.Agent.Trouble { //nolint:exhaustive // of all others it is not known that nothing is there
	case server.NoSuchHost, server.Refused, server.Silent:
		now := p.Clock.Now()
		if !s.HeardFrom(now) {
			return nil
		}
		return fault.Invalid("serverGone", "%s is not gone: its agent answered a batch host at %s, which counts for %s; "+
			"seen from here, %s", s.Name, s.AnsweredAt.UTC().Format(time.RFC3339), server.AnswerCounts, s.Judge(seen, now, "")[0].Found)
	case "":
		switch {
		case s.IsAnother(seen):
			return fault.Invalid("serverGone", "another server answers at %s, the address of %s%s", s.AgentURL, s.Name, elsewhere)
		case s.MayBeAnother(seen):
			return fault.Invalid("serverGone", "%s is not known to be gone: its agent answers, and cannot say now which server it is "+
				"(PostgreSQL down, not in charge, or another protocol); where its data is lost for good, stop the agent first", s.Name)
		}
		return fault.Invalid("serverGone", "%s is not gone: its agent answers at %s", s.Name, s.AgentURL)
	}
	if !seen.Agent.Answered() {
		return fault.Invalid("serverGone", "whether %s is gone was not seen from here, for %s could not be asked: %s%s",
			s.Name, s.AgentURL, seen.Agent.Why, elsewhere)
	}
	return fault.Invalid("serverGone", "something answers at %s, the address of %s (%s): see pgherd admin server check%s",
		s.AgentURL, s.Name, seen.Agent.Why, elsewhere)
}

// OrGone is appended to an error where the operator may say that the server is gone.
const OrGone = "; where it is gone for good, --server-gone"

// CheckThere demands that the agent of a server can be worked with, and that it is this server's. AGENT_ERROR says what is
// wrong, and what to do; otherwise is what else the caller offers where the server may be gone.
func (p *Base) CheckThere(ctx context.Context, of id.ServerID, otherwise string) error {
	s, seen, err := p.survey(ctx, of)
	if err != nil {
		return err
	}
	if seen.Agent.Trouble == "" && !s.IsAnother(seen) {
		otherwise = ""
	}
	for _, f := range s.Judge(seen, p.Clock.Now(), "") {
		if seen.Agent.Trouble != "" || f.Check == server.CheckInstallation && s.MayBeAnother(seen) ||
			f.Check == server.CheckVersion && f.Verdict == server.Wrong {
			return fault.New(fault.AgentError, "the server %s: %s: %s%s", s.Name, f.Found, f.Do, otherwise)
		}
	}
	return nil
}

func (p *Base) survey(ctx context.Context, of id.ServerID) (server.Server, server.Survey, error) {
	s, _, err := p.ServerOf(ctx, of)
	if s.ID == "" {
		return s, server.Survey{}, NotFound(err, fault.Invalid("server", "does not exist"))
	}
	return s, p.Fleet.Survey(ctx, s), nil
}
