package webhooks_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Only the development host may be told to send to private addresses or to trust another CA.
func TestOtherHostsRefuseWhatIsForDevelopment(t *testing.T) {
	binary, err := program()
	noError(t, err)
	dir := t.TempDir()
	commands := [][]string{{"api"}, {"batch"}, {"admin", "server", "list"}}
	settings := map[string]string{
		"PGHERD_ALLOW_PRIVATE_WEBHOOKS": "true", "PGHERD_WEBHOOK_CA_FILE": filepath.Join(dir, "ca.pem"),
	}
	for _, command := range commands {
		for name, value := range settings {
			cmd := exec.CommandContext(soon(t), binary, command...)
			cmd.Env = []string{
				"PATH=" + os.Getenv("PATH"), name + "=" + value, "PGHERD_KEYRING_FILE=" + filepath.Join(dir, "none"),
				"PGHERD_METADATA_URL=postgres://127.0.0.1:1/none",
			}
			out, err := cmd.CombinedOutput()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || !strings.Contains(string(out), name+" is for the development host only") {
				t.Errorf("%s with %s: %v\n%s", command, name, err, out)
			}
		}
	}
}
