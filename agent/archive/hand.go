package archive

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// ErrNoAgent is the error of Hand where no agent listens, or it is not ready.
var ErrNoAgent = errors.New("no agent takes what PostgreSQL has written")

// ExitNoAgent is the exit status of an archive_command for it. To PostgreSQL it is one for a command that is not there: it tries
// again in 10 seconds, instead of a minute after some tries, and a shutdown does not wait for them.
const ExitNoAgent = 126

// Hand is the client of the socket, in the data directory: it has the agent store a file, and returns once it is stored. It waits
// a while for an agent that does not listen yet, as after a start of the machine: PostgreSQL would pause for longer. A PostgreSQL
// that is being shut down does not wait.
func Hand(socket, path string) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	conn, err := dial(socket)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNoAgent, err)
	}
	defer conn.Close() // the answer is read
	_ = conn.SetDeadline(time.Now().Add(pushTime + askTime))
	if _, err := io.WriteString(conn, path+"\n"); err != nil {
		return err
	}
	says, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		return fmt.Errorf("the agent did not answer: %w", err)
	}
	switch says = strings.TrimSpace(says); says {
	case "ok":
		return nil
	case notReady:
		return fmt.Errorf("%w: %s", ErrNoAgent, says)
	}
	return errors.New(says)
}

const (
	agentTime = 20 * time.Second // to come and listen
	agentPoll = 100 * time.Millisecond
)

func dial(socket string) (net.Conn, error) {
	for began := time.Now(); ; time.Sleep(agentPoll) {
		conn, err := net.Dial("unix", socket)
		if err == nil || time.Since(began) > agentTime || !serverStays(".") {
			return conn, err
		}
	}
}

// serverStays reports whether PostgreSQL runs in a data directory, and nobody has told it to end.
func serverStays(dir string) bool {
	text, err := os.ReadFile(filepath.Join(dir, "postmaster.pid"))
	if err != nil {
		return false
	}
	const status = 7 // the line of it, from 0
	lines := strings.Split(string(text), "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(lines[0]))
	if err != nil || pid <= 0 || unix.Kill(pid, 0) != nil { // it is of this program's user
		return false
	}
	return len(lines) > status && !strings.HasPrefix(lines[status], "stopping")
}
