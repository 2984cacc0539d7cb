package api

import (
	"strings"
	"testing"
)

func TestANetworkThatIsNoneIsNamed(t *testing.T) {
	for _, wrong := range []string{"10.0.0.1", "203.0.113.0/33", "x/8", "203.0.113.0/24,"} {
		cmd := Command()
		cmd.SetArgs([]string{"--metadata-url", "postgres://x", "--keyring-file", "x", "--webhook-refused-networks", wrong})
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		if err := cmd.Execute(); err == nil || !strings.HasPrefix(err.Error(), "--webhook-refused-networks: ") {
			t.Errorf("%s: %v", wrong, err)
		}
	}
}
