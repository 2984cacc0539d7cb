//go:build traces

// Package traces tries the traces of a whole pgherd with the OpenTelemetry Collector.
package traces

import (
	"bufio"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/acceptance/stack/stacktest"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/trace"
	"github.com/pgherd/pgherd/hosts/cluster"
	"github.com/pgherd/pgherd/hosts/toolchain"
)

// collector is a running OpenTelemetry Collector.
type collector struct {
	url, file string
	process   *exec.Cmd
}

const config = `
receivers:
  otlp:
    protocols:
      http:
        endpoint: 127.0.0.1:%d
exporters:
  file:
    path: %s
    flush_interval: 100ms
service:
  telemetry:
    metrics:
      level: none
  pipelines:
    traces:
      receivers: [otlp]
      exporters: [file]
`

func collecting(t *testing.T) *collector {
	t.Helper()
	root, dir := check.Must(toolchain.Root())(t), t.TempDir()
	program := filepath.Join(root, toolchain.Dir, "programs", "collector")
	build := exec.CommandContext(t.Context(), "go", "-C", filepath.Join(root, "tools", "collector"), "build", "-o", program, ".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	port := check.Must(cluster.FreePort("127.0.0.1"))(t)
	c := &collector{url: "http://127.0.0.1:" + strconv.Itoa(port), file: filepath.Join(dir, "traces")}
	settings := filepath.Join(dir, "config.yaml")
	check.NoError(t, os.WriteFile(settings, fmt.Appendf(nil, config, port, c.file), 0o600))
	c.process = exec.Command(program, "--config=file:"+settings)
	c.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	log := check.Must(os.Create(filepath.Join(dir, "log")))(t)
	c.process.Stdout, c.process.Stderr = log, log
	check.NoError(t, c.process.Start())
	t.Cleanup(func() {
		_ = c.process.Process.Kill()
		_ = c.process.Wait()
		if text, err := os.ReadFile(log.Name()); t.Failed() && err == nil {
			t.Logf("the collector: %s", text)
		}
	})
	stacktest.Eventually(t, "the collector answers", func() (bool, string) {
		resp, err := http.Get(c.url)
		if err != nil {
			return false, err.Error()
		}
		return resp.Body.Close() == nil, ""
	})
	return c
}

// span is one in the collector's file.
type span struct {
	TraceID, SpanID, ParentSpanID, Name string

	Service    string            `json:"-"`
	Attributes []json.RawMessage `json:"attributes"`
}

// spans are all that the collector has of a trace.
func (c *collector) spans(t *testing.T, of string) (list []span) {
	t.Helper()
	file := check.Must(os.Open(c.file))(t)
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var batch struct {
			ResourceSpans []struct {
				Resource struct {
					Attributes []struct {
						Key   string
						Value struct{ StringValue string }
					}
				}
				ScopeSpans []struct{ Spans []span }
			}
		}
		if json.Unmarshal(lines.Bytes(), &batch) != nil {
			continue // the last one is being written
		}
		for _, r := range batch.ResourceSpans {
			for _, s := range r.ScopeSpans {
				for _, one := range s.Spans {
					if one.TraceID != of {
						continue
					}
					for _, a := range r.Resource.Attributes {
						if a.Key == "service.name" {
							one.Service = a.Value.StringValue
						}
					}
					list = append(list, one)
				}
			}
		}
	}
	check.NoError(t, lines.Err())
	return list
}

// asking remembers the request of a POST.
type asking struct{ last string }

func (a *asking) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err == nil && r.Method == http.MethodPost {
		a.last = resp.Header.Get("X-Request-Id")
	}
	return resp, err
}

// One request for a backup is one trace over the API host, its statements, the batch host, the agent, its job and the webhook,
// which whoever has the request's ID finds; and nothing secret is in any.
func TestABackupIsOneTrace(t *testing.T) {
	c := collecting(t)
	flags := []string{"--traces-endpoint=" + c.url, "--traces-share=1"}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	s := stacktest.Start(ctx, t, stack.Options{AgentFlags: flags})
	api := check.Must(s.StartAPI(ctx, "", flags...))(t)
	// The attempt at the webhook is refused before anything is sent: a test sends nothing to strangers.
	check.Must(s.StartBatch(ctx, "", append(flags, "--webhook-refused-networks=1.1.1.1/32")...))(t)
	owner := check.Must(s.NewAccount(ctx, "traced", "business", 0))(t)
	asked := &asking{}
	client := check.Must(stack.Client(api.URL, owner.Key, &http.Client{Transport: asked}))(t)
	hook := check.Must(client.Webhooks.Create(ctx, wire.CreateWebhook{URL: "https://1.1.1.1/traced"}))(t)
	made := check.Must(client.Databases.Create(ctx, wire.CreateDatabase{Name: "traced-shop", DisplayName: "Shop"}))(t)
	check.Must(stack.BackUp(ctx, client, made.ID))(t)
	id, root := trace.Of(asked.last)
	var spans []span
	stacktest.Eventually(t, "the whole trace is there", func() (bool, string) {
		spans = c.spans(t, hex.EncodeToString(id[:]))
		for _, want := range []string{
			"pgherd-api POST /api/v1/databases/{id}/backups", "pgherd-api metadata statement", "pgherd-batch operation backup",
			"pgherd-batch metadata transaction", "pgherd-batch agent backup.run", "pgherd-agent command backup.run",
			"pgherd-agent job backup.run", "pgherd-batch webhook backup.succeeded",
		} {
			if !slices.ContainsFunc(spans, func(s span) bool { return s.Service+" "+s.Name == want }) {
				return false, fmt.Sprintf("there is no %s in %+v", want, spans)
			}
		}
		return true, ""
	})
	known := map[string]bool{"": true, hex.EncodeToString(root[:]): true}
	for _, s := range spans {
		known[s.SpanID] = true
	}
	for _, s := range spans {
		if !known[s.ParentSpanID] {
			t.Errorf("%s of %s is below a span that is not there", s.Name, s.Service)
		}
		if s.ParentSpanID == "" && s.SpanID != hex.EncodeToString(root[:]) {
			t.Errorf("%s of %s begins the trace, too", s.Name, s.Service)
		}
	}
	text := string(check.Must(os.ReadFile(c.file))(t))
	for name, secret := range map[string]string{
		"API key": owner.Key, "password": made.Password, "webhook's secret": hook.Secret, "address of the hook": "1.1.1.1/traced",
		"mail address": owner.Email, "database's name": "traced-shop", "metadata's address": s.MetadataURL(),
	} {
		if secret == "" || strings.Contains(text, secret) {
			t.Errorf("the %s is in the traces", name)
		}
	}
}
