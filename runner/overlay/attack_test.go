package overlay

import "fmt"

func attack(q request) (stop func()) { return func() {} }

func (s *served) extra(q request, r *response) error { return fmt.Errorf("unknown request %q", q.Op) }
