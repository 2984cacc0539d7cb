package plan

import (
	"math/rand/v2"
	"time"
)

// Disturbance is something that goes wrong, and that is put right again. It begins so long after the step before it was begun.
type Disturbance struct {
	Kind  Kind          `json:"kind"`
	Part  Part          `json:"part"`
	Other Part          `json:"other,omitempty"` // of a cut: the other end
	After time.Duration `json:"after"`
	Lasts time.Duration `json:"lasts,omitempty"`
	Jump  time.Duration `json:"jump,omitempty"` // of a clock
}

// Kind is what goes wrong.
type Kind string

// What goes wrong. What is killed is started again by its supervisor, as a service manager does.
const (
	Kill Kind = "kill"
	Stop Kind = "stop" // SIGSTOP, and SIGCONT when it has lasted
	Fill Kind = "fill" // the disk of a machine
	Cut  Kind = "cut"  // the network between two machines
	Jump Kind = "jump" // the clock of the programs on a machine; it is right again when it has lasted
)

// Part is a process, or a machine.
type Part string

// Processes are what can be killed and stopped.
var Processes = []Part{
	"api1", "api2", "batch1", "batch2", "dashboard1", "dashboard2", "agent1", "agent2", "pooler1", "pooler2",
	"postgres1", "postgres2", "metadata", "store",
}

// Machines are what has a network of its own, and a disk.
var Machines = []Part{"host1", "host2", "server1", "server2", "meta", "objects"}

// Hosted says on which machine each process runs.
var Hosted = map[Part]Part{
	"api1": "host1", "batch1": "host1", "dashboard1": "host1", "api2": "host2", "batch2": "host2", "dashboard2": "host2",
	"agent1": "server1", "pooler1": "server1", "postgres1": "server1",
	"agent2": "server2", "pooler2": "server2", "postgres2": "server2", "metadata": "meta", "store": "objects",
}

// Links are the machines that speak with each other.
var Links = [][2]Part{
	{"host1", "meta"}, {"host2", "meta"}, {"host1", "server1"}, {"host1", "server2"}, {"host2", "server1"}, {"host2", "server2"},
	{"server1", "server2"}, {"server1", "objects"}, {"server2", "objects"},
}

// Disks are the machines whose disk is small.
var Disks = []Part{"server1", "server2", "meta", "objects"}

// Clocks are the machines whose programs have a clock that jumps. The clocks of PostgreSQL stay right: the hosts and the agents
// are compared with them.
var Clocks = []Part{"host1", "host2", "server1", "server2"}

// Jumps of a clock: a correction, a virtual machine that was resumed, and a wrong date.
var jumps = []time.Duration{
	-2 * time.Second, 2 * time.Second, -50 * time.Second, 90 * time.Second, -10 * time.Minute, 2 * time.Hour, -26 * time.Hour,
	40 * 24 * time.Hour,
}

// disturb makes a disturbance. Kills are half of them: everything else is milder than a kill at the wrong moment.
func disturb(r *rand.Rand) *Disturbance {
	d := &Disturbance{
		After: time.Duration(r.IntN(1500)) * time.Millisecond, Lasts: time.Duration(1000+r.IntN(9000)) * time.Millisecond,
	}
	switch n := r.IntN(10); {
	case n < 5:
		d.Kind, d.Part, d.Lasts = Kill, pick(r, Processes), 0
	case n < 7:
		d.Kind, d.Part = Stop, pick(r, Processes)
	case n < 8:
		d.Kind, d.Part = Fill, pick(r, Disks)
	case n < 9:
		link := pick(r, Links)
		d.Kind, d.Part, d.Other = Cut, link[0], link[1]
	default:
		d.Kind, d.Part, d.Jump = Jump, pick(r, Clocks), pick(r, jumps)
	}
	return d
}

func pick[T any](r *rand.Rand, list []T) T { return list[r.IntN(len(list))] }
