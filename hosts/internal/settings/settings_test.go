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
	if err == nil || err.Error() != "PGHERD_WORKERS, for --workers, must be a whole number, such as 4" {
		t.Errorf("got %v", err)
	}
}

// A variable that is nearly a setting is refused, one that is none at all is told of, and both without their values.
func TestAVariableThatIsNoSetting(t *testing.T) {
	for name, c := range map[string]struct{ refused, warned string }{
		"PGHERD_METADATA_ULR":      {refused: "did you mean PGHERD_METADATA_URL?"},
		"PGHERD_METADATAURL":       {refused: "did you mean PGHERD_METADATA_URL?"},
		"PGHERD_METADATA_URL_FIEL": {refused: "did you mean PGHERD_METADATA_URL_FILE?"},
		"PGHERD_METADATA":          {refused: "did you mean PGHERD_METADATA_URL?"},
		"PGHERD_WORKER":            {refused: "did you mean PGHERD_WORKERS?"},
		"PGHERD_OTHERS":            {refused: "did you mean PGHERD_OTHER?"}, // of a command beside it
		"PGHERD_FAVOURITE_COLOUR":  {warned: "warning: PGHERD_FAVOURITE_COLOUR is no setting of pgherd, and is ignored"},
		"PGHERD_OTHER":             {},
		"PGHERD_CI_KEY":            {},
		"PGHERD_TEST_ANYTHING":     {},
		"METADATA_ULR":             {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(name, "s3cret")
			cmd, _, _ := command(t)
			beside := &cobra.Command{Use: "y"}
			beside.Flags().String("other", "", "")
			root := &cobra.Command{}
			root.AddCommand(cmd, beside)
			var out strings.Builder
			root.SetErr(&out)
			text := ""
			if err := settings.Apply(cmd); err != nil {
				text = err.Error()
			}
			if !holds(text, c.refused) || !holds(out.String(), c.warned) || strings.Contains(text+out.String(), "s3cret") {
				t.Errorf("refused with %q, warned of with %q", text, out.String())
			}
		})
	}
}

// holds is for a text that is empty where nothing is wanted.
func holds(text, want string) bool {
	return strings.Contains(text, want) && (text == "") == (want == "")
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
