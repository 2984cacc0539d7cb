package app

import (
	"testing"
	"time"

	"github.com/spf13/cobra"
)

func TestWordsOfAShell(t *testing.T) {
	for text, want := range map[string]string{
		"db.example.com": "db.example.com", "/etc/x.pem": "/etc/x.pem", "": "''",
		"a b": "'a b'", "it's": `'it'\''s'`, "$(x)": "'$(x)'", "a\nb": "'a\nb'", "~": "'~'", "#": "'#'", "ä": "'ä'",
	} {
		if got := Quote(text); got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
}

func TestTheLineThatRepeatsACommand(t *testing.T) {
	var text string
	var number int
	var yes, no bool
	var wait time.Duration
	root, cmd := &cobra.Command{Use: "svc"}, &cobra.Command{Use: "make NAME", Run: func(*cobra.Command, []string) {}}
	root.AddCommand(cmd)
	root.PersistentFlags().StringVar(&text, "url", "", "")
	root.PersistentFlags().DurationVar(&wait, "timeout", 0, "")
	cmd.Flags().IntVar(&number, "number", 1, "")
	cmd.Flags().BoolVar(&yes, "yes", false, "")
	cmd.Flags().BoolVar(&no, "no", false, "")
	root.SetArgs([]string{"make", "--number=2", "--timeout=1s", "--url", "https://it", "a name", "--yes"})
	if err := root.Execute(); err != nil {
		t.Fatal(err)
	}
	if got, want := Again(cmd, []string{"a name"}), "svc make 'a name' --number 2 --url https://it --yes"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestOtherCommandsAreForTheSameService(t *testing.T) {
	for want, a := range map[string]*App{
		"svc webhooks list":                                     {},
		"svc webhooks list --profile 'my own'":                  {Profile: "my own"},
		"svc webhooks list --url http://db --insecure-http":     {url: "http://db", insecureHTTP: true},
		"svc webhooks list --profile prod --ca-file /etc/x.pem": {Profile: "prod", caFile: "/etc/x.pem"},
	} {
		if got := a.Onward("svc", "webhooks", "list"); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
