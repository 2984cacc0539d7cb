package batch

import (
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/pgherd/pgherd/core/retention"
)

func TestHowLongThingsAreKept(t *testing.T) {
	for _, k := range retention.Kinds() {
		if kept[k] == "" {
			t.Errorf("%s is not described", k)
		}
	}
	for arguments, want := range map[string]string{
		"": "", "--keep-operations=31d --keep-audit=9000h --keep-keys=48h": "",
		"--keep-operations=29d":                 "--keep-operations: must be kept for at least 30d",
		"--keep-keys=1h":                        "--keep-keys: must be kept for at least 2d",
		"--keep-operations=30d --keep-keys=31d": "--keep-operations: must be kept for at least as long as keys, which is 31d",
		"--keep-audit=400":                      "\"400\" is no length of time such as 400d or 36h",
		"--keep-audit=-1d":                      "--keep-audit",
	} {
		var p retention.Policy
		f := pflag.NewFlagSet("batch", pflag.ContinueOnError)
		keepFlags(f, &p)
		err := f.Parse(strings.Fields(arguments))
		if err == nil {
			err = checkKept(p)
		}
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", arguments, err, want)
		}
		if strings.Contains(arguments, "31d --keep-audit") && (p.Of(retention.Audit) != 9000*time.Hour ||
			p.Of(retention.Changes) != retention.Changes.Bounds().Default) {
			t.Errorf("%q: %v", arguments, p)
		}
	}
}
