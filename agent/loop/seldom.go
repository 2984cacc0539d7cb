package loop

import (
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/pgherd/pgherd/core/repeat"
)

// Seldom writes lines of trouble that repeats itself once in a while, as repeat.Memory has it. Its zero value is ready, and it is
// safe for concurrent use.
type Seldom struct {
	once   sync.Once
	memory *repeat.Memory
}

// Say reports whether to write a line about the trouble that is called what, and how often it has come since the last such line.
func (s *Seldom) Say(what string) (silent int, say bool) {
	s.once.Do(func() { s.memory = repeat.New(time.Now) })
	say, silent = s.memory.Failed(what)
	return silent, say
}

// Warn writes a warning about the trouble that is called what, if it is to be told of, with how often it came.
func (s *Seldom) Warn(log *zap.Logger, what, message string, fields ...zap.Field) {
	silent, say := s.Say(what)
	if !say {
		return
	}
	if silent > 0 {
		fields = append(fields, zap.Int("times", silent+1))
	}
	log.Warn(message, fields...)
}
