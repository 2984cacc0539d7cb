package svc

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/creack/pty"
)

// terminalMain runs a command on a terminal of its own, and ends with the command's status: "tty COLSxROWS [-screen] [-in FILE]
// COMMAND [ARG...]".
func terminalMain() {
	status, err := onTerminal(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "tty:", err)
		os.Exit(125)
	}
	os.Exit(status)
}

// terminalTime is how long a command on a terminal may take.
const terminalTime = time.Minute

func onTerminal(args []string) (status int, err error) {
	flags := flag.NewFlagSet("tty", flag.ContinueOnError)
	screen, in := flags.Bool("screen", false, ""), flags.String("in", "", "")
	var size pty.Winsize
	if len(args) == 0 {
		return 0, errors.New("no size is given")
	}
	if _, err := fmt.Sscanf(args[0], "%dx%d", &size.Cols, &size.Rows); err != nil {
		return 0, fmt.Errorf("%s is no size, such as 80x24", args[0])
	}
	if err := flags.Parse(args[1:]); err != nil {
		return 0, err
	}
	var lines []string
	if *in != "" {
		text, err := os.ReadFile(*in)
		if err != nil {
			return 0, err
		}
		lines = strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	}
	if flags.NArg() == 0 {
		return 0, errors.New("no command is given")
	}
	command := exec.Command(flags.Arg(0), flags.Args()[1:]...)
	terminal, err := pty.StartWithSize(command, &size)
	if err != nil {
		return 0, err
	}
	late := time.AfterFunc(terminalTime, func() { _ = command.Process.Kill() }) // it may have ended
	t := &typist{terminal: terminal}
	go t.types(lines)
	t.reads() // until the last process has closed the terminal
	_ = command.Wait()
	if !late.Stop() {
		err = fmt.Errorf("the command did not end within %s", terminalTime)
	}
	text := strings.ReplaceAll(t.text(), "\r\n", "\n")
	if *screen {
		text = remains(text)
	}
	fmt.Print(visible.Replace(text))
	return command.ProcessState.ExitCode(), err
}

var visible = strings.NewReplacer("\x1b", "␛", "\r", "␍", "\a", "␇")

// typist sits at a terminal.
type typist struct {
	terminal *os.File

	mu   sync.Mutex
	read bytes.Buffer
	last time.Time // when something was read
}

func (t *typist) reads() {
	b := make([]byte, 4096)
	for {
		n, err := t.terminal.Read(b)
		t.mu.Lock()
		t.read.Write(b[:n])
		t.last = time.Now()
		t.mu.Unlock()
		if err != nil {
			return // Linux has an error of its own for the end
		}
	}
}

func (t *typist) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.read.String()
}

// quiet is how long nothing comes after a prompt.
const quiet = 150 * time.Millisecond

// prompted reports whether there is a prompt behind the first bytes.
func (t *typist) prompted(behind int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := t.read.Bytes()
	return len(text) > behind && text[len(text)-1] != '\n' && time.Since(t.last) >= quiet
}

// redrawn is where a line is drawn once more, as a progress bar is.
var redrawn = regexp.MustCompile(`\r[^\n]|\x1b\[[0-9]*[AF]`)

// types answers each prompt with a line. It goes on until the process ends: the command may want fewer lines.
func (t *typist) types(lines []string) {
	for at := 0; len(lines) > 0; time.Sleep(10 * time.Millisecond) {
		keys, secret := strings.CutPrefix(lines[0], "*")
		ready := t.prompted(at) || keys == "^C" && redrawn.MatchString(t.text()[at:])
		if !ready || secret && echoes(t.terminal) {
			continue
		}
		at = len(t.text())
		switch keys {
		case "^C":
			keys = "\x03"
		case "^D":
			keys = "\x04"
		default:
			keys += "\r"
		}
		_, _ = t.terminal.WriteString(keys) // the command may have ended
		lines = lines[1:]
	}
}

// control is what moves the cursor, erases or colours; the parameter is the first submatch and what to do the second.
var control = regexp.MustCompile(`^\x1b\[\??([0-9;]*)([A-Za-z])`)

// remains plays what a terminal was sent, and returns the text that is on it in the end.
func remains(sent string) string {
	lines, row, column := [][]rune{nil}, 0, 0
	for len(sent) > 0 {
		if found := control.FindStringSubmatch(sent); found != nil {
			sent = sent[len(found[0]):]
			n, err := strconv.Atoi(found[1])
			switch found[2] {
			case "K": // erase to the end of the line, or all of it
				keep := min(column, len(lines[row]))
				if n == 2 {
					keep = 0
				}
				lines[row] = lines[row][:keep]
			case "J": // erase what is below
				lines = lines[:row+1]
				lines[row] = lines[row][:min(column, len(lines[row]))]
			case "A", "F": // up
				if err != nil {
					n = 1
				}
				row = max(0, row-n)
				if found[2] == "F" {
					column = 0
				}
			case "G":
				column = max(0, n-1)
			}
			continue
		}
		r, length := utf8.DecodeRuneInString(sent)
		sent = sent[length:]
		switch r {
		case '\n':
			row, column = row+1, 0
			if row == len(lines) {
				lines = append(lines, nil)
			}
		case '\r':
			column = 0
		default:
			for len(lines[row]) <= column {
				lines[row] = append(lines[row], ' ')
			}
			lines[row][column] = r
			column++
		}
	}
	var text []string
	for _, line := range lines {
		text = append(text, strings.TrimRight(string(line), " "))
	}
	return strings.TrimSuffix(strings.Join(text, "\n"), "\n") + "\n"
}
