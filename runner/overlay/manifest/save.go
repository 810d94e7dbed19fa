package manifest

import (
	"context"
	"encoding/binary"
	"fmt"

	"stepbox/runner/overlay/content"
)

// Save stores the manifest's objects that aren't stored yet and returns the
// hash that Load takes. The contents were stored by Scan. One lineage of
// manifests must always be saved to the same Bodies. A nil manifest can't be
// saved.
func (m *Manifest) Save(ctx context.Context, b content.Bodies) (content.Hash, error) {
	q := content.NewQueue(b)
	var fresh []*object
	if err := m.Root.Sub.save(ctx, q, &fresh); err != nil {
		return content.Hash{}, fmt.Errorf("cannot save checkpoint: %w", err)
	}
	magic := manifestMagic
	if m.Base != nil {
		magic = recordedMagic
		if err := m.Base.Root.Sub.save(ctx, q, &fresh); err != nil {
			return content.Hash{}, fmt.Errorf("cannot save what the project had: %w", err)
		}
	}
	sub, _ := m.Root.Sub.known()
	body := binary.AppendUvarint([]byte(magic), uint64(m.Len()))
	body = binary.AppendUvarint(body, uint64(m.Bytes()))
	body = AppendEntry(body, &m.Root.Entry, sub)
	if m.Base != nil {
		sub, _ = m.Base.Root.Sub.known()
		body = binary.AppendUvarint(body, m.Base.Steps)
		body = AppendEntry(body, &m.Base.Root.Entry, sub)
	}
	h := content.Sum(body)
	if err := q.Add(ctx, h, body); err != nil {
		return content.Hash{}, fmt.Errorf("cannot save checkpoint: %w", err)
	}
	if err := q.Flush(ctx); err != nil {
		return content.Hash{}, fmt.Errorf("cannot save checkpoint: %w", err)
	}
	for _, o := range fresh {
		h, _ := o.known()
		o.set(h, true)
	}
	return h, nil
}

// save queues what is below d and then d. Objects queued go to fresh.
func (d *Dir) save(ctx context.Context, q *content.Queue, fresh *[]*object) error {
	if _, saved := d.known(); saved {
		return nil
	}
	put := func(o *object, body []byte) error {
		h := content.Sum(body)
		o.set(h, false)
		*fresh = append(*fresh, o)
		return q.Add(ctx, h, body)
	}
	hashes := make([]content.Hash, 0, len(d.Pages))
	for _, p := range d.Pages {
		if h, saved := p.known(); saved {
			hashes = append(hashes, h)
			continue
		}
		body := binary.AppendUvarint([]byte(pageMagic), uint64(len(p.Nodes)))
		for _, n := range p.Nodes {
			var sub content.Hash
			if n.Sub != nil {
				if err := n.Sub.save(ctx, q, fresh); err != nil {
					return err
				}
				sub, _ = n.Sub.known()
			}
			body = AppendEntry(body, &n.Entry, sub)
		}
		if err := put(&p.object, body); err != nil {
			return err
		}
		h, _ := p.known()
		hashes = append(hashes, h)
	}
	if len(d.Pages) == 1 { // the page stands for the directory
		d.set(hashes[0], false)
		*fresh = append(*fresh, &d.object)
		return nil
	}
	body := binary.AppendUvarint([]byte(indexMagic), uint64(len(hashes)))
	for _, h := range hashes {
		body = append(body, h[:]...)
	}
	return put(&d.object, body)
}
