package dev

import (
	"fmt"
	"io"
	"strings"
)

// facts are what a user of the development host needs to know, written as lines of NAME=value.
type facts []struct{ name, value string }

func (s Settings) facts(g *infrastructure) facts {
	seed, caFile := g.seed, g.ca.CertFile()
	return facts{
		{"PGHERD_BASE_URL", s.apiURL()},
		{"PGHERD_DASHBOARD_URL", s.dashboardURL()},
		{"PGHERD_DASHBOARD_LOGIN_URL", g.logInURL}, // works once
		{"PGHERD_OPS_URL", s.opsURL()},
		{"PGHERD_AGENT_URL", s.agentURL()},
		{"PGHERD_AGENT_SECRET", g.agentSecret},
		{"PGHERD_METADATA_URL", g.metadataURL},
		{"PGHERD_KEYRING_FILE", s.keyringFile()},
		{"PGHERD_SERVER_URL", g.postgres.URL("postgres")},
		{"PGHERD_CA_FILE", caFile},
		{"PGHERD_ACCOUNT_ID", string(seed.AccountID)},
		{"PGHERD_API_KEY", seed.APIKey},
		{"PGHERD_CI_KEY", seed.CIKey},
		{"PGHERD_MAILBOX_DIR", s.mailbox()},
		// The same for svc.
		{"SVC_BASE_URL", s.apiURL()},
		{"SVC_API_KEY", seed.APIKey},
		{"SVC_CA_FILE", caFile},
	}
}

// write stores the facts for a shell to read. The file contains secrets and is readable by its owner only. Values with special
// characters are quoted for the shell.
func (f facts) write(file string) error {
	var text strings.Builder
	for _, fact := range f {
		fmt.Fprintf(&text, "%s=%s\n", fact.name, quoted(fact.value))
	}
	return writeFile(file, []byte(text.String()))
}

func quoted(value string) string {
	if strings.ContainsAny(value, " \t'\"\\$&|;<>()`*?[]#~!{}") {
		return "'" + strings.ReplaceAll(value, "'", `'\''`) + "'"
	}
	return value
}

const welcome = `
pgherd is ready. Ctrl-C stops it; its state stays in %[1]s.

  API             %[2]s/api/v1
  API key         %[3]s   (full account)
  preview CI key  %[4]s
  CA file         %[5]s
  dashboard       %[7]s
  logs you in     %[8]s   (once)

Try, in another terminal:

  set -a; . %[6]s; set +a
  bin/svc databases create shop
  bin/svc databases list
  curl -s -H "Authorization: Bearer $PGHERD_API_KEY" $PGHERD_BASE_URL/api/v1/databases

`

func (s Settings) greet(w io.Writer, g *infrastructure) error {
	_, err := fmt.Fprintf(w, welcome, s.StateDir, s.apiURL(), g.seed.APIKey, g.seed.CIKey, g.ca.CertFile(), s.envFile(),
		s.dashboardURL(), g.logInURL)
	return err
}
