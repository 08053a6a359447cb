"""What a run tells of itself: events, figures, metrics, health and traces."""
