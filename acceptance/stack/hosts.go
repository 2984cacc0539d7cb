package stack

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/user"
	"regexp"
	"strconv"
	"time"

	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/hosts/cluster"
)

// crashVariable arms a crash point, in a program built with the tag CrashPoints, and armVariable names a file that does while
// the program runs.
const (
	crashVariable = "PGHERD_CRASH_AT"
	armVariable   = "PGHERD_CRASH_FILE"
)

// Pause is between two looks of somebody who has waited so long: a look costs those who are looked at, too, and most on a busy
// machine, where the waits are long.
func Pause(waited time.Duration) time.Duration {
	return min(max(20*time.Millisecond, waited/10), 100*time.Millisecond)
}

// Host is an API or batch host.
type Host struct {
	*Process
	// URL of the API; empty for a batch host.
	URL   string
	opsAt string

	again func(crashAt string) (*Process, error)
}

// Restart starts the host again, at the same addresses, after it has ended.
func (h *Host) Restart(ctx context.Context, crashAt string) error {
	if err := h.Relaunch(crashAt); err != nil {
		return err
	}
	return h.AwaitReady(ctx)
}

// Relaunch is Restart for a host that may die before it is ready.
func (h *Host) Relaunch(crashAt string) error {
	if h.Running() {
		return fmt.Errorf("%s runs already", h.Name)
	}
	p, err := h.again(crashAt)
	if err == nil {
		h.Process = p
	}
	return err
}

// OpsAddress is where the host's operations listener is.
func (h *Host) OpsAddress() string { return h.opsAt }

// AwaitReady waits until the host reports that it is ready.
func (h *Host) AwaitReady(ctx context.Context) error {
	return h.await(ctx, func() error { return h.Ready(ctx) })
}

// Ready is an error where the host does not say that it is ready.
func (h *Host) Ready(ctx context.Context) error {
	_, err := get(ctx, http.DefaultClient, "http://"+h.opsAt+"/readyz", nil, http.StatusOK)
	return err
}

// Metrics scrapes the host.
func (h *Host) Metrics(ctx context.Context) (string, error) { return scrape(ctx, h.opsAt) }

// AgentMetrics scrapes an agent, which says in its log where.
func (s *Stack) AgentMetrics(ctx context.Context, agent *Process) (string, error) {
	text, err := agent.Log()
	if err != nil {
		return "", err
	}
	at := operationsAt.FindAllSubmatch(text, -1)
	if len(at) == 0 {
		return "", errors.New("the agent does not say where its operations listener is")
	}
	return scrape(ctx, string(at[len(at)-1][1]))
}

var operationsAt = regexp.MustCompile(`"part":"operations","address":"([^"]+)"`)

func scrape(ctx context.Context, address string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", nil)
	if err != nil {
		return "", err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %d %s", address, resp.StatusCode, text)
	}
	return string(text), err
}

// StartAPI starts one more API host. crashAt arms a crash point; extra are more flags.
func (s *Stack) StartAPI(ctx context.Context, crashAt string, extra ...string) (*Host, error) {
	return s.StartAPIOn(ctx, Place{}, crashAt, extra...)
}

// StartAPIOn starts it in a place.
func (s *Stack) StartAPIOn(ctx context.Context, on Place, crashAt string, extra ...string) (*Host, error) {
	address, err := freeAddress(on)
	if err != nil {
		return nil, err
	}
	const unlimited = "read=1000000/1m,write=1000000/1m,create=1000000/1m,reveal=1000000/1m,unauthorized=1000000/1m"
	args := []string{"--listen", address, "--rate-limits", unlimited, "--default-schedule", "none"}
	if on.Address != "" {
		args = append(args, "--insecure-listen") // the network is the test's alone
	}
	args = append(args, extra...)
	h, err := s.startHost(ctx, on, crashAt, "api", args...)
	if h != nil {
		h.URL = "http://" + address
	}
	return h, err
}

// StartBatch starts one more batch host.
func (s *Stack) StartBatch(ctx context.Context, crashAt string, extra ...string) (*Host, error) {
	return s.StartBatchOn(ctx, Place{}, crashAt, extra...)
}

// StartBatchOn starts it in a place.
func (s *Stack) StartBatchOn(ctx context.Context, on Place, crashAt string, extra ...string) (*Host, error) {
	return s.startHost(ctx, on, crashAt, "batch", extra...)
}

func (s *Stack) startHost(ctx context.Context, on Place, crashAt, command string, args ...string) (*Host, error) {
	ops, err := freeAddress(on)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.hosts++
	name := command + strconv.Itoa(s.hosts)
	s.mu.Unlock()
	h := &Host{opsAt: ops, again: func(crashAt string) (*Process, error) {
		return s.launch(on, name, crashAt, append([]string{
			command, "--ops-listen", ops, "--default-postgres", strconv.Itoa(s.tools.Major),
		}, args...)...)
	}}
	if h.Process, err = h.again(crashAt); err != nil {
		return nil, err
	}
	return h, h.AwaitReady(ctx)
}

// LaunchAdmin starts a command of the operator's that is to die at a crash point.
func (s *Stack) LaunchAdmin(crashAt string, args ...string) (*Process, error) {
	return s.launch(Place{}, "admin", crashAt, append([]string{"admin"}, args...)...)
}

func freeAddress(on Place) (string, error) {
	port, err := cluster.FreePort(on.address())
	return net.JoinHostPort(on.address(), strconv.Itoa(port)), err
}

// LaunchAgent starts an agent and waits for nothing: it may be armed to die while it starts, and may take over from another.
// At most one listens on the agent's address; extra flags come last and win.
func (s *Stack) LaunchAgent(crashAt string, extra ...string) (*Process, error) {
	args, err := s.agentArguments()
	if err != nil {
		return nil, err
	}
	return s.launch(s.options.On, "agent", crashAt, append(args, extra...)...)
}

// LaunchAgentWithFileLimit starts an agent that can write no file longer than so many blocks, of 512 or 1024 bytes as the
// shell has it.
func (s *Stack) LaunchAgentWithFileLimit(blocks int) (*Process, error) {
	args, err := s.agentArguments()
	if err != nil {
		return nil, err
	}
	script := fmt.Sprintf(`ulimit -f %d && exec "$0" "$@"`, blocks)
	return s.launchProgram(s.options.On, "agent", "/bin/sh", s.environment(),
		append([]string{"-c", script, s.options.Binary}, args...)...)
}

func (s *Stack) agentArguments() ([]string, error) {
	args := []string{
		"agent", "--listen", net.JoinHostPort(s.options.On.address(), strconv.Itoa(s.agentPort)),
		"--ops-listen", net.JoinHostPort(s.options.On.address(), "0"),
		"--tls-cert-file", s.path("ca", "agent.crt"), "--tls-key-file", s.path("ca", "agent.key"),
		"--postgres-host", s.Server.Host(), "--postgres-port", strconv.Itoa(s.Server.Port()),
		"--pooler-dir", s.path("pooler"), "--pooler-socket-dir", s.socketDir, "--pooler-listen", s.options.On.address(),
		"--pooler-port", strconv.Itoa(s.poolerPort),
		"--pooler-tls-cert-file", s.path("ca", "pooler.crt"), "--pooler-tls-key-file", s.path("ca", "pooler.key"),
		"--backup-dir", s.options.BackupDir, "--backup-reserve", "1", "--pg-dump", s.tools.PgDump, "--data-dir", s.options.Dir,
	}
	if s.options.Archive {
		args = append(args, "--archive-socket", s.archiveSocket(), "--pgbackrest", s.tools.PgBackRest,
			"--postgres-program", s.tools.Postgres)
	}
	uid, _, switched, err := cluster.ChildUser()
	if err != nil {
		return nil, err
	}
	if switched {
		owner, err := user.LookupId(strconv.Itoa(uid))
		if err != nil {
			return nil, err
		}
		args = append(args, "--pooler-user", owner.Username)
	}
	return append(args, s.options.AgentFlags...), nil
}

// noDatabase is an ID that no database has.
const noDatabase = "00000000-0000-4000-8000-000000000000"

// AwaitAgent waits until the agent is in charge of the server and answers commands.
func (s *Stack) AwaitAgent(ctx context.Context, p *Process) error {
	return s.AwaitAgentAt(ctx, p, s.AgentURL())
}

// AwaitAgentAt does the same for an agent that listens elsewhere.
func (s *Stack) AwaitAgentAt(ctx context.Context, p *Process, agentURL string) error {
	client, err := s.agentClient()
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	return p.await(ctx, func() error {
		header := http.Header{"Authorization": {"Bearer " + s.agentSecret}}
		body, err := get(ctx, client, agentURL+"/v1/capabilities", header, http.StatusOK)
		var known command.Capabilities
		if err = errors.Join(err, json.Unmarshal(body, &known)); err != nil {
			return err
		}
		header.Set(protocol.Header, strconv.Itoa(known.Protocol)) // which may be that of an earlier release
		_, err = get(ctx, client, agentURL+"/v1/databases/"+noDatabase+"/size", header, http.StatusNotFound)
		return err
	})
}

func (s *Stack) agentClient() (*http.Client, error) {
	text, err := os.ReadFile(s.ca.CertFile())
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, errors.New("the CA file holds no certificate")
	}
	return &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}, nil
}

// Arm arms a crash point of a process that runs. One that is started in its place has none.
func (s *Stack) Arm(p *Process, crashAt string) error {
	whole := s.path(p.Name + ".arm")
	if err := os.WriteFile(whole, []byte(crashAt), 0o644); err != nil {
		return err
	}
	return os.Rename(whole, s.armFile(p.Name))
}

func (s *Stack) armFile(name string) string { return s.path(name + ".armed") }

func (s *Stack) launch(on Place, name, crashAt string, args ...string) (*Process, error) {
	if err := os.Remove(s.armFile(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	env := append(s.environment(), armVariable+"="+s.armFile(name))
	if crashAt != "" {
		env = append(env, crashVariable+"="+crashAt)
	}
	return s.launchProgram(on, name, s.options.Binary, env, args...)
}

func (s *Stack) launchProgram(on Place, name, program string, env []string, args ...string) (*Process, error) {
	p, err := launch(on, name, program, s.path(name+".log"), env, args...)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.processes = append(s.processes, p)
	return p, nil
}

// await asks again and again until there is no error, and gives up when the process or the context ends.
func (p *Process) await(ctx context.Context, ready func() error) error {
	for began := time.Now(); ; {
		err := ready()
		if err == nil {
			return nil
		}
		select {
		case <-p.done:
			return fmt.Errorf("%s ended before it was ready:\n%s", p.Name, p.tail())
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready: %w\n%s", p.Name, err, p.tail())
		case <-time.After(Pause(time.Since(began))):
		}
	}
}

func get(ctx context.Context, client *http.Client, url string, header http.Header, want int) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	if header != nil {
		request.Header = header
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(response.Body)
	if response.StatusCode != want {
		err = fmt.Errorf("GET %s: %s", url, response.Status)
	}
	return body, errors.Join(err, response.Body.Close())
}
