package server

import (
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/fault"
)

func TestValidate(t *testing.T) {
	good := Server{AgentURL: "https://agent.example.org:8090", PublicHost: "db.example.org", PublicPort: 6432, Capacity: 1}
	cases := []struct {
		field  string // that is refused; empty where the server is accepted
		change func(*Server)
	}{
		{"", func(*Server) {}},
		{"", func(s *Server) { s.AgentURL = "https://agent.example.org:8090/" }},
		{"", func(s *Server) { s.AgentURL = "https://[2001:db8::1]:8090" }},
		{"", func(s *Server) { s.AgentURL = "https://agent" }},
		{"", func(s *Server) { s.PublicHost = "192.0.2.1" }},
		{"", func(s *Server) { s.PublicHost = "localhost" }},
		{"", func(s *Server) { s.PublicPort = 65535 }},
		{"agentUrl", func(s *Server) { s.AgentURL = "" }},
		{"agentUrl", func(s *Server) { s.AgentURL = "http://agent:8090" }},
		{"agentUrl", func(s *Server) { s.AgentURL = "agent:8090" }},
		{"agentUrl", func(s *Server) { s.AgentURL = "https://" }},
		{"agentUrl", func(s *Server) { s.AgentURL = "https://:8090" }},
		{"agentUrl", func(s *Server) { s.AgentURL = "https:agent:8090" }},
		{"agentUrl", func(s *Server) { s.AgentURL = "https://agent:8090/v1" }},
		{"agentUrl", func(s *Server) { s.AgentURL = "https://agent:8090?a=b" }},
		{"agentUrl", func(s *Server) { s.AgentURL = "https://agent:8090?" }},
		{"agentUrl", func(s *Server) { s.AgentURL = "https://agent:8090#a" }},
		{"agentUrl", func(s *Server) { s.AgentURL = "https://me:secret@agent:8090" }},
		{"agentUrl", func(s *Server) { s.AgentURL = "https://agent\x00:8090" }},
		{"agentUrl", func(s *Server) { s.AgentURL = "https://agent:99999" }},
		{"agentUrl", func(s *Server) { s.AgentURL = "https://\u212aent:8090" }},
		{"publicHost", func(s *Server) { s.PublicHost = "" }},
		{"publicHost", func(s *Server) { s.PublicHost = "\u212aent.example.org" }},
		{"publicHost", func(s *Server) { s.PublicHost = "db:6432" }},
		{"publicHost", func(s *Server) { s.PublicHost = "a,b" }},
		{"publicHost", func(s *Server) { s.PublicHost = "db/x" }},
		{"publicHost", func(s *Server) { s.PublicHost = "me@db" }},
		{"publicHost", func(s *Server) { s.PublicHost = "db\n" }},
		{"publicHost", func(s *Server) { s.PublicHost = "db example" }},
		{"publicHost", func(s *Server) { s.PublicHost = "db%2f" }},
		{"publicHost", func(s *Server) { s.PublicHost = "2001:db8::1" }},
		{"publicPort", func(s *Server) { s.PublicPort = 0 }},
		{"publicPort", func(s *Server) { s.PublicPort = 65536 }},
		{"capacity", func(s *Server) { s.Capacity = 0 }},
		{"", func(s *Server) { s.Connections = 262_143 }},
		{"connections", func(s *Server) { s.Connections = -1 }},
		{"connections", func(s *Server) { s.Connections = 262_144 }},
	}
	for _, v := range cases {
		s := good
		v.change(&s)
		err := s.Validate()
		if v.field == "" && err != nil {
			t.Errorf("%+v: %v", s, err)
		}
		if v.field != "" && (!fault.Has(err, fault.ValidationError) || field(err) != v.field) {
			t.Errorf("%+v is to be refused for %s: %v", s, v.field, err)
		}
	}
}

func field(err error) string {
	e, ok := err.(*fault.Error)
	if !ok || len(e.Details) != 1 {
		return ""
	}
	return e.Details[0].Field
}

func TestSecretContextNamesTheServer(t *testing.T) {
	a, b := Server{ID: "a"}, Server{ID: "b"}
	if a.SecretContext() == b.SecretContext() || a.SecretContext() != SecretContext("a") {
		t.Error(a.SecretContext(), b.SecretContext())
	}
}

// An answer that was stored counts until a host that runs has stored another one, and not once it has stored that there is none.
func TestHeardFrom(t *testing.T) {
	at := func(ago time.Duration) *time.Time { then := now.Add(-ago); return &then }
	for name, c := range map[string]struct {
		answered, away *time.Time
		want           bool
	}{
		"never":            {nil, nil, false},
		"just now":         {at(0), nil, true},
		"by a clock apart": {at(-time.Hour), nil, true},
		"lately":           {at(AnswerCounts - 1), nil, true},
		"long ago":         {at(AnswerCounts), nil, false},
		"away since then":  {at(time.Second), at(0), false},
	} {
		if got := (Server{AnsweredAt: c.answered, AwaySince: c.away}).HeardFrom(now); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
