package agentd

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/pgherd/pgherd/acceptance/check"
)

const oneSecret, otherSecret = "0f3c5e79a1b2d4e68f7091a3b5c7d9e2", "kX3vPq9ZtR5mWc7LbN2sDv"

func TestSecretsFollowTheirFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "agent-secret")
	write := func(text string) { check.NoError(t, os.WriteFile(file, []byte(text), 0o600)) }
	write(oneSecret + "\n")
	k := check.Must((&Settings{SecretFile: file}).openSecrets())(t)
	core, logged := observer.New(zap.InfoLevel)
	for _, c := range []struct {
		text  string
		want  []string
		lines int // of the log, so far
	}{
		{oneSecret, []string{oneSecret}, 0},
		{otherSecret + "\n" + oneSecret + "\n", []string{otherSecret, oneSecret}, 1},
		{"short", []string{otherSecret, oneSecret}, 2},
		{"short", []string{otherSecret, oneSecret}, 2},
		{"", []string{otherSecret, oneSecret}, 3},
		{otherSecret, []string{otherSecret}, 4},
	} {
		write(c.text)
		k.Reread(zap.New(core))
		if got := k.accepted(); !slices.Equal(got, c.want) || logged.Len() != c.lines {
			t.Errorf("%q: %q accepted, %d lines", c.text, got, logged.Len())
		}
	}
	for _, line := range logged.All() {
		for _, f := range line.Context {
			if text := f.String; strings.Contains(text, oneSecret) || strings.Contains(text, otherSecret) {
				t.Errorf("%s: %s", line.Message, text)
			}
		}
	}
}

// What cannot be meant ends the start in one line that names the setting.
func TestSecretsThatAreRefused(t *testing.T) {
	weak := filepath.Join(t.TempDir(), "weak")
	check.NoError(t, os.WriteFile(weak, []byte("0123456789abcdef\n"), 0o600))
	for says, s := range map[string]Settings{
		"PGHERD_AGENT_SECRET: the agent's secret is too short": {Secret: "0123456789abcdef"},
		"PGHERD_AGENT_SECRET_FILE " + weak + ": the agent's":   {SecretFile: weak},
		"PGHERD_AGENT_SECRET_FILE: open " + weak + "x":         {SecretFile: weak + "x"},
		"both set": {Secret: oneSecret, SecretFile: weak},
	} {
		if _, err := s.openSecrets(); err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v, want %q", err, says)
		}
	}
}
