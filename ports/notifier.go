package ports

// Notifier wakes workers. It may wake for nothing and it may miss: whoever waits on it also polls.
type Notifier interface {
	// Wake returns a channel that receives after work was committed to the queue. Each call makes a channel of its own;
	// stop releases it.
	Wake() (c <-chan struct{}, stop func())
}
