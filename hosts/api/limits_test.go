package api

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/adapters/httpapi/serve"
)

func TestConnectionsThatCannotBeAreRefused(t *testing.T) {
	for named, change := range map[string]func(*serve.Limits){
		"":                                      func(*serve.Limits) {},
		"--max-connections, which is 0":         func(l *serve.Limits) { l.Connections = 0 },
		"--max-connections-per-address is 0":    func(l *serve.Limits) { l.ConnectionsPerAddress = 0 },
		"--max-connections-per-address is 5001": func(l *serve.Limits) { l.ConnectionsPerAddress = l.Connections/2 + 1 },
		"LimitNOFILE":                           func(l *serve.Limits) { l.Connections = MostConnections() + 1 },
	} {
		limits := serve.DefaultLimits()
		change(&limits)
		err := checkConnections(limits)
		if (err == nil) != (named == "") || (err != nil && !strings.Contains(err.Error(), named)) {
			t.Errorf("%q: %v", named, err)
		}
	}
}

// The files that the process may open at its start decide, not those of the machine that it was made for.
func TestTooFewFilesAreRefused(t *testing.T) {
	var was unix.Rlimit
	check.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &was))
	defer func() { check.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &was)) }()
	few := was
	few.Cur = 4096
	check.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &few))
	cmd := Command()
	cmd.SetArgs([]string{"--metadata-url", "postgres://x", "--keyring-file", "x"})
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	if err := cmd.Execute(); err == nil || !strings.Contains(err.Error(), "PGHERD_MAX_CONNECTIONS) is 10000, and this process may "+
		"have 4096 files open") {
		t.Error(err)
	}
}

func TestDownloadsThatCannotBeAreRefused(t *testing.T) {
	for named, wrong := range map[string][]string{
		"downloads-per-account is": {"0", "-1", "17", "32", "40"}, "download-min-rate must be": {"0", "-1", "16383", "1073741825"},
	} {
		flag, _, _ := strings.Cut(named, " ")
		for _, value := range wrong {
			cmd := Command()
			cmd.SetArgs([]string{"--metadata-url", "postgres://x", "--keyring-file", "x", "--" + flag, value})
			cmd.SilenceErrors, cmd.SilenceUsage = true, true
			if err := cmd.Execute(); err == nil || !strings.Contains(err.Error(), "--"+named) {
				t.Errorf("--%s %s: %v", flag, value, err)
			}
		}
	}
}
