package batch

import (
	"strings"
	"testing"
)

func TestNumbersThatAreRefused(t *testing.T) {
	for flags, named := range map[string]string{
		"--workers 1":                          "--workers-per-account is 1, and must be from 1 to half of --workers, which is 1",
		"--workers 8 --workers-per-account 5":  "--workers-per-account is 5",
		"--workers 8 --workers-per-account -1": "--workers-per-account is -1",
		"--workers 8 --workers-per-server 8":   "--workers-per-server is 8, and must be from 1 to half of --workers, which is 8",
		"--deliveries 15":                      "half of --deliveries, which is 15",
		"--account-metrics 1001":               "--account-metrics must be from 0 to 1000",
		"--account-metrics -1":                 "--account-metrics must be from 0 to 1000",
	} {
		cmd := Command()
		cmd.SetArgs(append([]string{"--metadata-url", "postgres://x", "--keyring-file", "x"}, strings.Fields(flags)...))
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		if err := cmd.Execute(); err == nil || !strings.Contains(err.Error(), named) {
			t.Errorf("%s: %v", flags, err)
		}
	}
}
