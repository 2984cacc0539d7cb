package settings_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/hosts/internal/settings"
)

func command(t *testing.T, args ...string) (*cobra.Command, *string, *int) {
	t.Helper()
	cmd := &cobra.Command{Use: "x"}
	url := cmd.Flags().String("metadata-url", "", "")
	workers := cmd.Flags().Int("workers", 4, "")
	check.NoError(t, cmd.ParseFlags(args))
	return cmd, url, workers
}

func TestWhereASettingComesFrom(t *testing.T) {
	file := filepath.Join(t.TempDir(), "url")
	check.NoError(t, os.WriteFile(file, []byte("from-file\n"), 0o600))
	for name, c := range map[string]struct {
		args []string
		env  map[string]string
		want string
	}{
		"nowhere":  {nil, nil, ""},
		"variable": {nil, map[string]string{"PGHERD_METADATA_URL": "from-env"}, "from-env"},
		"file":     {nil, map[string]string{"PGHERD_METADATA_URL_FILE": file}, "from-file"},
		"variable over file": {
			nil, map[string]string{"PGHERD_METADATA_URL": "from-env", "PGHERD_METADATA_URL_FILE": file}, "from-env",
		},
		"flag over all": {
			[]string{"--metadata-url=from-flag"}, map[string]string{"PGHERD_METADATA_URL": "from-env"}, "from-flag",
		},
		"empty variable":      {nil, map[string]string{"PGHERD_METADATA_URL": ""}, ""},
		"flag that was empty": {[]string{"--metadata-url="}, map[string]string{"PGHERD_METADATA_URL": "from-env"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			for k, v := range c.env {
				t.Setenv(k, v)
			}
			cmd, url, _ := command(t, c.args...)
			check.NoError(t, settings.Apply(cmd))
			if *url != c.want {
				t.Errorf("got %q, want %q", *url, c.want)
			}
		})
	}
}

func TestAWrongValueIsNamedButNotShown(t *testing.T) {
	t.Setenv("PGHERD_WORKERS", "s3cret")
	cmd, _, _ := command(t)
	err := settings.Apply(cmd)
	if err == nil || !strings.Contains(err.Error(), "PGHERD_WORKERS") || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("got %v", err)
	}
}

func TestRequireNamesFlagAndVariable(t *testing.T) {
	cmd, _, _ := command(t)
	err := settings.Require(cmd, "metadata-url")
	if err == nil || !strings.Contains(err.Error(), "--metadata-url (or PGHERD_METADATA_URL)") {
		t.Errorf("got %v", err)
	}
}

// A command that changes what is given is changed by no variable, and one that reads a file itself is given its path.
func TestWhatVariablesDoNotSet(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secret")
	check.NoError(t, os.WriteFile(file, []byte("hidden"), 0o600))
	t.Setenv("PGHERD_AGENT_SECRET_FILE", file)
	t.Setenv("PGHERD_CAPACITY", "7")
	cmd := &cobra.Command{Use: "x"}
	secret, path := cmd.Flags().String("agent-secret", "", ""), cmd.Flags().String("agent-secret-file", "", "")
	capacity := cmd.Flags().Int("capacity", 3, "")
	settings.Explicit(cmd, "capacity")
	check.NoError(t, settings.Apply(cmd))
	if *secret != "" || *path != file || *capacity != 3 || cmd.Flags().Changed("capacity") {
		t.Errorf("%q, %q, %d", *secret, *path, *capacity)
	}
}
