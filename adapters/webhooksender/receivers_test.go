package webhooksender

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/ports"
)

// example is a receiver of docs/use/webhooks.md: how its language runs a program, and a second program that checks its verify
// function against the published signatures and prints "agrees".
type example struct {
	fence   string
	file    string
	tool    string
	run     []string
	check   []string
	checker map[string]string
}

var examples = []example{
	{
		fence: "go", file: "main.go", tool: "go", run: []string{"run", "main.go"},
		check: []string{"test", "-count=1", "-v", "-run", "TestVerify", "main.go", "main_test.go"},
		checker: map[string]string{"main_test.go": `package main

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"testing"
)

func TestVerify(t *testing.T) {
	text, err := os.ReadFile(os.Getenv("VECTORS"))
	var vectors []struct {
		Name, Secret, Timestamp, BodyBase64, Signature string
		Valid                                          bool
	}
	if err != nil || json.Unmarshal(text, &vectors) != nil {
		t.Fatal(err)
	}
	for _, v := range vectors {
		body, _ := base64.StdEncoding.DecodeString(v.BodyBase64)
		if verify(v.Secret, v.Timestamp, body, v.Signature) != v.Valid {
			t.Error(v.Name)
		}
	}
	t.Log("agrees with", len(vectors))
}
`},
	},
	{
		fence: "python", file: "receiver.py", tool: "python3", run: []string{"receiver.py"}, check: []string{"check.py"},
		checker: map[string]string{"check.py": `
import base64, json, os
from receiver import verify
vectors = json.load(open(os.environ["VECTORS"]))
for v in vectors:
    assert verify(v["secret"], v["timestamp"], base64.b64decode(v["bodyBase64"]), v["signature"]) == v["valid"], v["name"]
print("agrees with", len(vectors))
`},
	},
	{
		fence: "javascript", file: "receiver.mjs", tool: "node", run: []string{"receiver.mjs"}, check: []string{"check.mjs"},
		checker: map[string]string{"check.mjs": `
import { readFileSync } from "node:fs";
import { verify } from "./receiver.mjs";
const vectors = JSON.parse(readFileSync(process.env.VECTORS, "utf8"));
for (const v of vectors) {
  if (verify(v.secret, v.timestamp, Buffer.from(v.bodyBase64, "base64"), v.signature) !== v.valid) throw new Error(v.name);
}
console.log("agrees with", vectors.length);
`},
	},
}

// extract takes the one block of a language out of the page and puts it, with its checker, into a folder of its own.
func (e example) extract(t *testing.T) string {
	t.Helper()
	page := check.Must(os.ReadFile("../../docs/use/webhooks.md"))(t)
	parts := strings.Split(string(page), "\n```"+e.fence+"\n")
	if len(parts) != 2 {
		t.Fatalf("docs/use/webhooks.md has %d blocks in %s", len(parts)-1, e.fence)
	}
	code, _, _ := strings.Cut(parts[1], "\n```\n")
	dir := t.TempDir()
	write(t, filepath.Join(dir, e.file), code+"\n")
	for name, text := range e.checker {
		write(t, filepath.Join(dir, name), text)
	}
	return dir
}

func write(t *testing.T, path, text string) {
	t.Helper()
	check.NoError(t, os.WriteFile(path, []byte(text), 0o644))
}

func (e example) command(t *testing.T, dir string, args []string, environment ...string) *exec.Cmd {
	t.Helper()
	if _, err := exec.LookPath(e.tool); err != nil {
		t.Fatalf("the receivers of docs/use/webhooks.md are tested in every language that they are written in: install %s", e.tool)
	}
	cmd := exec.Command(e.tool, args...)
	cmd.Dir = dir
	cmd.Env = append(append(os.Environ(), "GOFLAGS=", "PYTHONDONTWRITEBYTECODE=1"), environment...)
	return cmd
}

func TestTheReceiversOfTheDocsAgreeWithTheSignatures(t *testing.T) {
	vectors := must(filepath.Abs("../../core/webhook/testdata/signatures.json"))
	for _, e := range examples {
		t.Run(e.fence, func(t *testing.T) {
			t.Parallel()
			out, err := e.command(t, e.extract(t), e.check, "VECTORS="+vectors).CombinedOutput()
			if err != nil || !strings.Contains(string(out), "agrees with 23") {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// Each receiver runs behind a TLS proxy, as it would for a customer, and the real sender delivers to it.
func TestTheReceiversOfTheDocsReceive(t *testing.T) {
	for _, e := range examples {
		t.Run(e.fence, func(t *testing.T) {
			t.Parallel()
			url, log := e.start(t)
			r := ports.WebhookRequest{
				URL: url, Secret: documentedSecret, EventID: "5b6962dd-3f90-4c93-8f61-eabfa4a803e2",
				Body: []byte(`{"id":"first","event":"backup.succeeded","data":{"databaseName":"Käse"}}`), At: time.Now(),
			}
			second, forged, old, unsigned := r, r, r, r
			second.EventID, second.Body = "6b6962dd-3f90-4c93-8f61-eabfa4a803e2", []byte(`{"id":"second","event":"something.new"}`)
			forged.EventID, forged.Secret = "7b6962dd-3f90-4c93-8f61-eabfa4a803e2", "whsec_forgedforgedforgedforgedforgedfo"
			old.EventID, old.At = "8b6962dd-3f90-4c93-8f61-eabfa4a803e2", time.Now().Add(-6*time.Minute)
			unsigned.EventID, unsigned.Secret = "9b6962dd-3f90-4c93-8f61-eabfa4a803e2", ""
			for i, c := range []struct {
				r    ports.WebhookRequest
				want int
			}{{r, 204}, {r, 204}, {second, 204}, {forged, 401}, {old, 401}, {unsigned, 401}} {
				if o, err := local(t, 0).Send(t.Context(), c.r); err != nil || o.StatusCode != c.want {
					t.Errorf("request %d: %+v, %v, want %d", i, o, err, c.want)
				}
			}
			for line, want := range map[string]int{"backup.succeeded first": 1, "something.new second": 1} {
				if got := strings.Count(log.String(), line); got != want {
					t.Errorf("%q was handled %d times", line, got)
				}
			}
		})
	}
}

const documentedSecret = "whsec_documenteddocumenteddocumenteddo"

// start runs the receiver until the test ends, and returns its URL behind TLS and what it prints.
func (e example) start(t *testing.T) (string, *output) {
	t.Helper()
	free := must(net.Listen("tcp", "127.0.0.1:0"))
	address := free.Addr().String()
	free.Close()
	_, port, _ := net.SplitHostPort(address)
	log := &output{}
	cmd := e.command(t, e.extract(t), e.run, "PORT="+port, "WEBHOOK_SECRET="+documentedSecret)
	if e.tool == "go" { // "go run" would leave its child behind
		build := e.command(t, cmd.Dir, []string{"build", "-o", "receiver", "main.go"})
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		cmd.Path, cmd.Args = filepath.Join(cmd.Dir, "receiver"), []string{"receiver"}
	}
	cmd.Stdout, cmd.Stderr = log, log
	check.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	waitFor(t, address, log)
	proxy := httputil.NewSingleHostReverseProxy(must(url.Parse("http://" + address)))
	transport := &http.Transport{DisableKeepAlives: true}
	proxy.Transport = transport
	return receive(t, nil, proxy.ServeHTTP).URL + "/hook", log
}

func waitFor(t *testing.T, address string, log fmt.Stringer) {
	t.Helper()
	for began := time.Now(); time.Since(began) < time.Minute; time.Sleep(20 * time.Millisecond) {
		if conn, err := net.Dial("tcp", address); err == nil {
			conn.Close()
			return
		}
	}
	t.Fatalf("the receiver does not start:\n%s", log)
}

// output keeps what a process prints.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}
